"""Recurrent networks: the step by hand, and baselines on PyTorch's fused layers.

The functions hold the mathematics in plain tensors (row vectors, weights stored
as (in, out)). The models run on `nn.RNN`, `nn.GRU` and `nn.LSTM`, so that what
they lose against attention they do not lose through slow code of ours.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attn_course.attention import additive_attention, lookup
from attn_course.masks import padding_mask

Kind = Literal["rnn", "gru", "lstm"]
Score = Literal["additive", "dot"]
State = Tensor | tuple[Tensor, Tensor]  # an LSTM carries two tensors, (layers, b, d) each
_LAYERS = {"rnn": nn.RNN, "gru": nn.GRU, "lstm": nn.LSTM}


def rnn_step(
    x: Float[Tensor, "b d_in"],
    h: Float[Tensor, "b d_h"],
    W_x: Float[Tensor, "d_in d_h"],
    W_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "b d_h"]:
    """Return the state that follows `h` after reading `x`.

    h' = tanh(x W_x + h W_h + b)  (Elman 1990, "Finding Structure in Time")
    """
    return torch.tanh(x @ W_x + h @ W_h + b)


def run_rnn(
    inputs: Float[Tensor, "b n d_in"],
    h0: Float[Tensor, "b d_h"],
    W_x: Float[Tensor, "d_in d_h"],
    W_h: Float[Tensor, "d_h d_h"],
    b: Float[Tensor, " d_h"],
) -> Float[Tensor, "b n d_h"]:
    """Return the states after each of the n inputs, starting from `h0`, which is not among them.

    Each step waits for the one before: n steps, one after another.

    Raises:
        ValueError: if there is no input to read (n = 0).
    """
    if inputs.shape[1] == 0:
        raise ValueError(f"inputs has shape {tuple(inputs.shape)}: n = 0, nothing to read")
    h = h0
    states = []
    for x in inputs.unbind(dim=1):
        h = rnn_step(x, h, W_x, W_h, b)
        states.append(h)
    return torch.stack(states, dim=1)


def gradient_by_distance(
    run: Callable[[Float[Tensor, "b n d_in"]], Float[Tensor, "b n d_out"]],
    inputs: Float[Tensor, "b n d_in"],
) -> Float[Tensor, " n"]:
    """Return how strongly the last output of `run` depends on the input k positions before it.

    With s the sum of the features of the last output, entry k is the Euclidean
    norm (over d_in) of ds/dx at position n - 1 - k, averaged over the batch:
    entry 0 is the last input, entry n - 1 the first. `run` may not mix the
    sequences of a batch. Neither `inputs` nor the parameters that `run` uses
    receive a `.grad`.

    In a recurrent network entry k is a product of k Jacobians (Bengio et al.
    1994), hence its exponential fall or rise.
    """
    inputs = inputs.detach().requires_grad_()
    last_output = run(inputs)[:, -1]
    (gradient,) = torch.autograd.grad(last_output.sum(), inputs)
    return gradient.norm(dim=-1).mean(dim=0).flip(0)


class RNNCell(nn.Module):
    """One recurrent step with its weights: `rnn_step` as a module.

    Weights and bias start uniform in ±1/√d_h, as those of `nn.RNN` do.
    """

    def __init__(self, d_in: int, d_h: int) -> None:
        """Draw the weights from torch's global generator."""
        super().__init__()
        _require_positive(d_in=d_in, d_h=d_h)
        bound = d_h**-0.5
        self.W_x = nn.Parameter(torch.empty(d_in, d_h).uniform_(-bound, bound))
        self.W_h = nn.Parameter(torch.empty(d_h, d_h).uniform_(-bound, bound))
        self.b = nn.Parameter(torch.empty(d_h).uniform_(-bound, bound))

    def forward(self, x: Float[Tensor, "b d_in"], h: Float[Tensor, "b d_h"]) -> Tensor:
        """Return the next state, (b, d_h)."""
        return rnn_step(x, h, self.W_x, self.W_h, self.b)

    def run(self, inputs: Float[Tensor, "b n d_in"]) -> Float[Tensor, "b n d_h"]:
        """Return all n states, starting from zeros."""
        h0 = inputs.new_zeros(inputs.shape[0], self.b.shape[0])
        return run_rnn(inputs, h0, self.W_x, self.W_h, self.b)


class RecurrentLM(nn.Module):
    """A language model that carries all it knows of the past in one state.

    Embedding → `num_layers` fused recurrent layers of width d_model → logits.
    `kind` is "rnn" (tanh), "gru" (Cho et al. 2014) or "lstm" (Hochreiter and
    Schmidhuber 1997). `tied` shares the embedding with the output projection.
    """

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        kind: Kind = "gru",
        num_layers: int = 1,
        dropout_p: float = 0.0,
        tied: bool = False,
    ) -> None:
        """Build the layers; raise ValueError for a size below 1 or an unknown kind."""
        super().__init__()
        _require_positive(vocab_size=vocab_size, d_model=d_model, num_layers=num_layers)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.layers = _recurrent_layers(kind, d_model, d_model, num_layers, dropout_p)
        self.dropout = nn.Dropout(dropout_p)
        self.W_out = nn.Linear(d_model, vocab_size)
        if tied:
            # N(0, 1) embeddings would start the logits with a variance of d_model
            nn.init.normal_(self.embedding.weight, std=d_model**-0.5)
            self.W_out.weight = self.embedding.weight

    def forward(self, tokens: Int[Tensor, "b n"]) -> Float[Tensor, "b n vocab"]:
        """Return the logits of the token that follows each position."""
        return self.step(tokens, None)[0]

    def step(
        self, tokens: Int[Tensor, "b n"], state: State | None
    ) -> tuple[Float[Tensor, "b n vocab"], State]:
        """Read n more tokens from `state` (None: the start); return logits and the new state."""
        states, after = self.layers(self.dropout(self.embedding(tokens)), state)
        return self.W_out(self.dropout(states)), after


class RecurrentSeq2Seq(nn.Module):
    """An encoder and a decoder, joined by one state or also by attention over all states.

    Without attention the decoder sees the source only through the encoder's
    last state (Sutskever et al. 2014). With it, each decoder state also looks
    back at all encoder states by additive attention (Bahdanau et al. 2015,
    eq. 5 and 6) before the output is predicted from both. As in Luong et al.
    (2015) what was seen does not flow back into the recurrence, so that the
    decoder runs as one fused call when the target is known.

    Embeddings and states have width d_model, the additive score works in
    width `d_attention`. With `score="dot"` decoder and encoder states are
    matched as they are (Luong et al. 2015, "dot"), without weights of their own.
    """

    def __init__(
        self,
        source_vocab: int,
        target_vocab: int,
        d_model: int,
        *,
        attention: bool,
        kind: Kind = "gru",
        d_attention: int | None = None,
        score: Score = "additive",
    ) -> None:
        """Build the layers; raise ValueError for a size below 1, an unknown kind or score."""
        super().__init__()
        if score not in ("additive", "dot"):
            raise ValueError(f"score={score!r} is neither 'additive' nor 'dot'")
        d_attention = d_model if d_attention is None else d_attention
        _require_positive(
            source_vocab=source_vocab,
            target_vocab=target_vocab,
            d_model=d_model,
            d_attention=d_attention,
        )
        self.attention = attention
        self.score: Score = score
        self.source_embedding = nn.Embedding(source_vocab, d_model)
        self.target_embedding = nn.Embedding(target_vocab, d_model)
        self.encoder = _recurrent_layers(kind, d_model, d_model, 1, 0.0)
        self.decoder = _recurrent_layers(kind, d_model, d_model, 1, 0.0)
        if attention and score == "additive":
            self.W_q = nn.Parameter(torch.empty(d_model, d_attention))
            self.W_k = nn.Parameter(torch.empty(d_model, d_attention))
            self.w = nn.Parameter(torch.empty(d_attention))
            for weight in (self.W_q, self.W_k):
                nn.init.xavier_uniform_(weight)
            nn.init.uniform_(self.w, -(d_attention**-0.5), d_attention**-0.5)
        self.W_out = nn.Linear(2 * d_model if attention else d_model, target_vocab)

    def encode(
        self, source: Int[Tensor, "b n_source"], lengths: Int[Tensor, " b"] | None = None
    ) -> tuple[Float[Tensor, "b n_source d_model"], State]:
        """Return the states after each source token and the state after the last real one."""
        embedded = self.source_embedding(source)
        if lengths is None:
            return self.encoder(embedded)
        packed = pack_padded_sequence(
            embedded, lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, last = self.encoder(packed)
        states, _ = pad_packed_sequence(states, batch_first=True, total_length=source.shape[1])
        return states, last

    def forward(
        self,
        source: Int[Tensor, "b n_source"],
        target_in: Int[Tensor, "b n_target"],
        lengths: Int[Tensor, " b"] | None = None,
    ) -> tuple[Float[Tensor, "b n_target vocab"], Float[Tensor, "b n_target n_source"] | None]:
        """Return logits and alignment weights (None without attention).

        `target_in` is the target shifted right by a start token (`tasks.shift_right`).
        `lengths` counts the real tokens of each source, the others being padding
        behind them (None: all are real).
        """
        states, last = self.encode(source, lengths)
        logits, weights, _ = self._decode(target_in, states, last, lengths)
        return logits, weights

    def look_back(
        self,
        query: Float[Tensor, "b n_target d_model"],
        states: Float[Tensor, "b n_source d_model"],
        lengths: Int[Tensor, " b"] | None = None,
    ) -> tuple[Float[Tensor, "b n_target d_model"], Float[Tensor, "b n_target n_source"]]:
        """Return what each query finds among the states, keys and values in one, and the weights.

        Raises ValueError for a model built without attention.
        """
        if not self.attention:
            raise ValueError("this model has no attention: it was built with attention=False")
        if self.score == "dot":
            found, weights = lookup(query, states, states)
        else:
            found, weights = additive_attention(query, states, states, self.W_q, self.W_k, self.w)
        if lengths is None:
            return found, weights
        # sharing a padded key's weight out among the others is the same as masking its score
        weights = weights * padding_mask(lengths, states.shape[1])[:, None, :]
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return weights @ states, weights

    @torch.no_grad()
    def generate(
        self,
        source: Int[Tensor, "b n_source"],
        n_target: int,
        start_token: int,
        lengths: Int[Tensor, " b"] | None = None,
    ) -> tuple[Int[Tensor, "b n_target"], Float[Tensor, "b n_target n_source"] | None]:
        """Return the greedy output, each token read back as the next input, and its weights."""
        if n_target < 1:
            raise ValueError(f"n_target={n_target} must be at least 1")
        states, last = self.encode(source, lengths)
        token = source.new_full((source.shape[0], 1), start_token)
        tokens, rows = [], []
        for _ in range(n_target):
            logits, weights, last = self._decode(token, states, last, lengths)
            token = logits.argmax(dim=-1)
            tokens.append(token)
            rows.append(weights)
        return torch.cat(tokens, dim=1), torch.cat(rows, dim=1) if self.attention else None

    def _decode(
        self, target_in: Tensor, states: Tensor, last: State, lengths: Tensor | None = None
    ) -> tuple[Tensor, Tensor | None, State]:
        decoded, last = self.decoder(self.target_embedding(target_in), last)
        if not self.attention:
            return self.W_out(decoded), None, last
        context, weights = self.look_back(decoded, states, lengths)
        return self.W_out(torch.cat([decoded, context], dim=-1)), weights, last


def _recurrent_layers(
    kind: Kind, d_in: int, d_h: int, num_layers: int, dropout_p: float
) -> nn.RNNBase:
    if kind not in _LAYERS:
        raise ValueError(f"kind={kind!r} is none of {', '.join(map(repr, _LAYERS))}")
    between = dropout_p if num_layers > 1 else 0.0  # one layer has no "between": torch warns
    return _LAYERS[kind](d_in, d_h, num_layers, batch_first=True, dropout=between)


def _require_positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name}={size} must be at least 1")
