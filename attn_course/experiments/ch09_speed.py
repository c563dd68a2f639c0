"""Chapter 09: how fast models read training text, by its length, and how often they must wait."""

import time
from collections.abc import Callable, Mapping, Sequence

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from attn_course.device import pick_device
from attn_course.experiments.ch09 import CONFIG, GRU_WIDTH
from attn_course.experiments.devices import device_of, wait_for
from attn_course.models import DecoderLM
from attn_course.recurrent import RecurrentLM
from attn_course.training import torch_threads

TOKENS = 1024  # in each batch, whatever the length: longer texts, fewer of them
READERS = TRANSFORMER, FUSED, STEPWISE = (
    "Transformer",
    "GRU, one fused call",
    "GRU, token by token",
)

Forward = Callable[[Int[Tensor, "b n"]], Float[Tensor, "b n vocab"]]


def sequential_steps(reader: str, n: int) -> int:
    """Return how many layers must wait for each other to read n tokens.

    A layer of a Transformer has all positions at once, so depth alone counts. A recurrent layer
    has one position at a time, fused into one call or not. Raises ValueError for another reader.
    """
    _check(reader)
    return CONFIG.num_layers if reader == TRANSFORMER else n


def tokens_per_second(
    lengths: Sequence[int], *, vocab_size: int = 104, repeats: int = 3
) -> dict[str, list[float]]:
    """Return for each reader the training tokens per CPU-second at each length, on one thread.

    On a GPU they are counted per second of the clock.

    One step is forward and backward on batches of `TOKENS` tokens; the best of `repeats`.

    Raises ValueError for a length that does not divide `TOKENS`.
    """
    for n in lengths:
        if n < 1 or TOKENS % n:
            raise ValueError(f"n={n} does not divide the {TOKENS} tokens of a batch")
    with torch_threads(1):
        return {
            reader: [_speed(*_made(reader, vocab_size), n, vocab_size, repeats) for n in lengths]
            for reader in READERS
        }


def stepwise(model: RecurrentLM, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n vocab"]:
    """Return the logits of a recurrent model that is handed one token at a time."""
    state, found = None, []
    for token in ids.split(1, dim=1):
        logits, state = model.step(token, state)
        found.append(logits)
    return torch.cat(found, dim=1)


def by_prefixes(model: nn.Module, ids: Int[Tensor, "b n"]) -> Float[Tensor, "b n vocab"]:
    """Return the same logits as one call, from one call for each prefix: its last position."""
    return torch.stack([model(ids[:, :t])[:, -1] for t in range(1, ids.shape[1] + 1)], dim=1)


def _made(reader: str, vocab_size: int) -> tuple[nn.Module, Forward]:
    _check(reader)
    if reader == TRANSFORMER:
        transformer = DecoderLM(vocab_size, CONFIG).to(pick_device())
        return transformer, transformer
    gru = RecurrentLM(vocab_size, GRU_WIDTH, tied=True).to(pick_device())
    return gru, gru if reader == FUSED else lambda ids: stepwise(gru, ids)


def _speed(model: nn.Module, forward: Forward, n: int, vocab_size: int, repeats: int) -> float:
    device = device_of(model)
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    ids = torch.randint(vocab_size, (TOKENS // n, n), generator=torch.Generator().manual_seed(0))
    ids, times = ids.to(device), []
    for _ in range(repeats):
        wait_for(device)
        start = clock()
        F.cross_entropy(forward(ids).flatten(0, 1), ids.flatten()).backward()
        wait_for(device)
        times.append(clock() - start)
        model.zero_grad()
    return TOKENS / max(min(times), 1e-9)


def _check(reader: str) -> None:
    if reader not in READERS:
        raise ValueError(f"reader={reader!r} is none of {', '.join(READERS)}")


def relative_speed(speeds: Mapping[str, Sequence[float]], reader: str) -> list[float]:
    """Return how many times faster than `reader` the Transformer is, at each length."""
    pairs = zip(speeds[TRANSFORMER], speeds[reader], strict=True)
    return [ours / theirs for ours, theirs in pairs]
