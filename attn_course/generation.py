"""From logits to tokens: greedy, sampled, and the beam that keeps several at once."""

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any, Protocol, runtime_checkable

import torch
from einops import rearrange, repeat
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from attn_course.models import DecoderLM, Seq2Seq


def next_token_probs(
    logits: Float[Tensor, "*b vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "*b vocab"]:
    """Return the distribution to draw the next token from.

    In this order: logits divided by the temperature; all but the `top_k` largest dropped;
    of the rest the smallest set whose probability reaches `top_p` (Holtzman et al. 2020),
    the token that crosses it included; renormalised. Temperature 0 is greedy: all on the
    largest logit, of equal ones the first.

    Raises ValueError for a temperature below 0, top_k below 1, top_p outside 0 < p ≤ 1.
    """
    _check_sampling(temperature, top_k, top_p)
    if temperature == 0:
        best = logits.argmax(dim=-1, keepdim=True)
        return torch.zeros_like(logits).scatter(-1, best, 1.0)
    scaled = logits / temperature
    if top_k is not None and top_k < logits.shape[-1]:
        kept = scaled.topk(top_k, dim=-1).indices
        scaled = torch.full_like(scaled, -inf).scatter(-1, kept, scaled.gather(-1, kept))
    probs = scaled.softmax(dim=-1)
    if top_p is not None:
        largest_first, order = probs.sort(dim=-1, descending=True, stable=True)
        before = largest_first.cumsum(dim=-1) - largest_first
        kept_probs = largest_first.masked_fill(before >= top_p, 0.0)
        probs = torch.zeros_like(probs).scatter(-1, order, kept_probs)
    return probs / probs.sum(dim=-1, keepdim=True)


def sample_next(
    logits: Float[Tensor, "b vocab"],
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, " b"]:
    """Draw the next token of each sequence from `next_token_probs`."""
    _check_sampling(temperature, top_k, top_p)
    if temperature == 0:
        return logits.argmax(dim=-1)  # all probability is there: nothing to draw
    probs = next_token_probs(logits.float(), temperature, top_k, top_p)
    if generator is not None:
        probs = probs.to(generator.device)  # one of the CPU draws the same for every device
    return torch.multinomial(probs, 1, generator=generator)[:, 0].to(logits.device)


@torch.no_grad()
def generate(
    model: DecoderLM,
    prompt: Int[Tensor, "b n"],
    max_new_tokens: int,
    *,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    use_cache: bool = True,
    stop_token: int | None = None,
    generator: torch.Generator | None = None,
) -> Int[Tensor, "b n_total"]:
    """Continue each prompt by up to `max_new_tokens` tokens; return prompt and continuation.

    The model runs in eval mode, and is left in the mode in which it was. Its context is its
    last `config.max_len` tokens; where the text outgrows it the cache is filled anew, since
    every position has moved. After `stop_token` a sequence repeats it until all have stopped.

    Raises ValueError for an empty prompt and for settings out of range.
    """
    _check_sampling(temperature, top_k, top_p)
    if prompt.ndim != 2 or prompt.shape[1] == 0:
        raise ValueError(f"a prompt is (b, n) with n >= 1, got {tuple(prompt.shape)}")
    ids, max_len = prompt, model.config.max_len
    caches = model.new_caches() if use_cache else None
    with _in_eval_mode(model):
        for _ in range(max_new_tokens):
            logits = _last_logits(model, ids[:, -max_len:], caches)
            token = sample_next(logits, temperature, top_k, top_p, generator)
            if stop_token is not None:
                token = torch.where(ids[:, -1] == stop_token, ids[:, -1], token)
            ids = torch.cat([ids, token[:, None]], dim=1)
            if stop_token is not None and bool((token == stop_token).all()):
                break
    return ids


def _last_logits(model: DecoderLM, ids: Tensor, caches: list | None) -> Tensor:
    """Logits after the last token; with caches only what they do not hold is computed."""
    if caches is None:
        return model(ids)[:, -1]
    if caches[0].length >= ids.shape[1]:  # the context is full and has moved on by one
        for cache in caches:
            cache.reset()
    return model(ids[:, caches[0].length :], caches)[:, -1]


@runtime_checkable
class EncoderDecoder(Protocol):
    """What `greedy_decode` asks of a model, as `models.Seq2Seq` has it."""

    training: bool

    def encode(self, source: Tensor, padding: Tensor | None = None) -> Tensor:
        """Return the memory, (b, n_source, d)."""
        ...

    def decode(
        self, target: Tensor, memory: Tensor, padding: Tensor | None = None, caches: Any = None
    ) -> Tensor:
        """Return logits (b, n, vocab) for the token after each of `target`."""
        ...

    def new_caches(self, max_len: int) -> Any:
        """Return what `decode` keeps earlier tokens in."""
        ...

    def train(self, mode: bool = True) -> Any:
        """Set the mode, as `nn.Module` does."""
        ...


@torch.no_grad()
def greedy_decode(
    model: EncoderDecoder,
    source: Int[Tensor, "b n_source"],
    start_token: int,
    max_len: int,
    padding: Bool[Tensor, "b n_source"] | None = None,
    *,
    stop_token: int | None = None,
) -> Int[Tensor, "b n"]:
    """Write the most likely token after each prefix, without the start token.

    padding: True where the source is no padding. The model runs in eval mode, and is left in
        the mode in which it was.
    After `stop_token` a sequence repeats it, until all have stopped or `max_len` is reached.
    Raises ValueError if `max_len` is smaller than 1.
    """
    if max_len < 1:
        raise ValueError(f"max_len must be at least 1, got {max_len}")
    with _in_eval_mode(model):
        memory, caches = model.encode(source, padding), model.new_caches(max_len)
        token = torch.full_like(source[:, :1], start_token)
        written = []
        for _ in range(max_len):
            best = model.decode(token, memory, padding, caches)[:, -1:].argmax(dim=-1)
            if stop_token is not None and written:
                best = torch.where(token == stop_token, token, best)
            token = best
            written.append(token)
            if stop_token is not None and bool((token == stop_token).all()):
                break
    return torch.cat(written, dim=1)


@torch.no_grad()
def beam_search(
    model: Seq2Seq,
    source: Int[Tensor, "b n_source"],
    start_token: int,
    stop_token: int,
    max_len: int,
    *,
    beams: int = 4,
    length_penalty: float = 0.6,
    padding: Bool[Tensor, "b n_source"] | None = None,
) -> tuple[Int[Tensor, "b n"], Float[Tensor, " b"]]:
    """Keep the `beams` best prefixes of each sequence; return the best and its score.

    Scores are log-probabilities in nats divided by ((5 + length) / 6)^length_penalty
    (Wu et al. 2016, equation 14, which Vaswani et al. 2017 use with 0.6), where the length
    counts the stop token. A finished text is filled up with stop tokens.

    Raises ValueError if `beams` or `max_len` is smaller than 1.
    """
    if beams < 1 or max_len < 1:
        raise ValueError(f"beams and max_len must be at least 1, got {beams} and {max_len}")
    with _in_eval_mode(model):
        memory = repeat(model.encode(source, padding), "b n d -> (b k) n d", k=beams)
        visible = None if padding is None else repeat(padding, "b n -> (b k) n", k=beams)
        caches = model.new_caches(max_len)
        beam = _Beam(len(source), beams, stop_token, length_penalty, source.device)
        token = torch.full((len(source) * beams, 1), start_token, device=source.device)
        while beam.texts.shape[-1] < max_len and not beam.all_stopped():
            logits = model.decode(token, memory, visible, caches)[:, -1]
            rows = beam.advance(rearrange(logits.log_softmax(-1), "(b k) v -> b k v", k=beams))
            for cache in caches:
                cache.reorder(rows)
            token = rearrange(beam.texts[..., -1:], "b k 1 -> (b k) 1")
    return beam.best()


class _Beam:
    """The best prefixes of each sequence: texts (b, k, n), their log-probabilities, lengths."""

    def __init__(
        self, b: int, beams: int, stop_token: int, penalty: float, device: torch.device
    ) -> None:
        self.beams, self.stop_token, self.penalty = beams, stop_token, penalty
        self.texts = torch.empty(b, beams, 0, dtype=torch.long, device=device)
        self.lengths = torch.zeros(b, beams, device=device)
        # at first all beams are alike: only one of them may be continued
        self.log_probs = torch.full((b, beams), -inf, device=device)
        self.log_probs[:, 0] = 0.0

    def advance(self, steps: Float[Tensor, "b k vocab"]) -> Int[Tensor, " b_k"]:
        """Continue by one token; return, for each new beam, the flat number of its parent."""
        done = self._stopped()
        totals = self.log_probs[..., None] + self._only_stop(steps, done)
        lengths = self.lengths + (~done).to(self.lengths.dtype)
        ranked = rearrange(self._scores(totals, lengths[..., None]), "b k v -> b (k v)")
        choice = ranked.topk(self.beams, dim=-1).indices
        parent, token = choice // steps.shape[-1], choice % steps.shape[-1]
        self.log_probs = rearrange(totals, "b k v -> b (k v)").gather(1, choice)
        self.lengths = lengths.gather(1, parent)
        self.texts = torch.cat([_rows(self.texts, parent), token[..., None]], dim=-1)
        first = torch.arange(len(parent), device=parent.device)[:, None] * self.beams
        return (first + parent).flatten()

    def all_stopped(self) -> bool:
        """Whether no beam can change any more."""
        return self.texts.shape[-1] > 0 and bool(self._stopped().all())

    def best(self) -> tuple[Int[Tensor, "b n"], Float[Tensor, " b"]]:
        """The text with the best score, and the score."""
        scores = self._scores(self.log_probs, self.lengths)
        best = scores.argmax(dim=-1, keepdim=True)
        return _rows(self.texts, best)[:, 0], scores.gather(1, best)[:, 0]

    def _stopped(self) -> Bool[Tensor, "b k"]:
        return (self.texts[..., -1:] == self.stop_token).any(dim=-1)

    def _only_stop(self, steps: Tensor, done: Tensor) -> Tensor:
        """A finished text may only be continued by another stop, which costs nothing."""
        free = torch.full_like(steps, -inf)
        free[..., self.stop_token] = 0.0
        return torch.where(done[..., None], free, steps)

    def _scores(self, log_probs: Tensor, lengths: Tensor) -> Tensor:
        return log_probs / ((5 + lengths) / 6) ** self.penalty


def _rows(texts: Int[Tensor, "b k n"], parent: Int[Tensor, "b m"]) -> Int[Tensor, "b m n"]:
    return texts.gather(1, repeat(parent, "b m -> b m n", n=texts.shape[-1]))


@contextmanager
def _in_eval_mode(model: EncoderDecoder | nn.Module) -> Iterator[None]:
    """Without dropout, and back to the former mode whatever happens."""
    training = model.training
    model.train(False)
    try:
        yield
    finally:
        model.train(training)


def _check_sampling(temperature: float, top_k: int | None, top_p: float | None) -> None:
    if temperature < 0:
        raise ValueError(f"temperature={temperature} is below 0")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k} keeps no token")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} is not in 0 < p <= 1")
