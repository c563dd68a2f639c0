"""The distributions that known-wrong versions of exercise 9.3, sample_next, draw from."""

from __future__ import annotations

from collections.abc import Callable
from math import inf

import torch
from torch import Tensor

from attn_course.generation import next_token_probs

Distribution = Callable[[Tensor, float, int | None, float | None], Tensor]
"""logits (b, vocab), temperature, top_k, top_p -> probabilities (b, vocab)."""

# -- one step at a time -----------------------------------------------------------------------


def largest(logits: Tensor, k: int | None) -> Tensor:
    """Logits with all but the k largest at minus infinity."""
    if k is None:
        return logits
    k = max(1, min(k, logits.shape[-1]))
    return logits.masked_fill(logits < logits.topk(k, dim=-1).values[..., -1:], -inf)


def nucleus(probs: Tensor, p: float | None) -> Tensor:
    """Which tokens are in the smallest set that reaches p."""
    if p is None:
        return probs > 0
    return next_token_probs(probs.log(), 1.0, None, p) > 0


def renormalised(weights: Tensor) -> Tensor:
    """Shares of one, and all the same where nothing is left."""
    weights = weights.nan_to_num(0.0, 0.0, 0.0).clamp(min=0.0)
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, weights / total, torch.ones_like(weights) / weights.shape[-1])


# -- the wrong distributions ------------------------------------------------------------------


def temperature_last(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Cuts at temperature 1, then divides what is left."""
    kept = next_token_probs(logits, 1.0, top_k, top_p) > 0
    return (logits.masked_fill(~kept, -inf) / temperature).softmax(dim=-1)


def nucleus_first(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Takes top-p of all tokens, then top-k of those."""
    scaled = logits / temperature
    kept = nucleus(scaled.softmax(dim=-1), top_p)
    return largest(scaled.masked_fill(~kept, -inf), top_k).softmax(dim=-1)


def both_last(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Takes top-p of all tokens at temperature 1, then top-k, then the temperature."""
    kept = nucleus(logits.softmax(dim=-1), top_p)
    return (largest(logits.masked_fill(~kept, -inf), top_k) / temperature).softmax(dim=-1)


def cut_before_crossing(probs: Tensor, top_p: float) -> Tensor:
    """The probabilities without the token that crosses p, and without what comes after it."""
    ordered, order = probs.sort(dim=-1, descending=True)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) > top_p, 0.0)
    return torch.zeros_like(probs).scatter(-1, order, kept)


def crossing_dropped(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Leaves out the token that crosses p."""
    probs = next_token_probs(logits, temperature, top_k)
    if top_p is None:
        return probs
    return renormalised(cut_before_crossing(probs, top_p))


def crossing_dropped_but_one(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """The same, but the most likely token always stays."""
    probs = next_token_probs(logits, temperature, top_k)
    found = crossing_dropped(logits, temperature, top_k, top_p)
    if top_p is None:
        return found
    best = torch.zeros_like(probs).scatter(-1, probs.argmax(dim=-1, keepdim=True), 1.0)
    return torch.where(probs.amax(dim=-1, keepdim=True) > top_p, best, found)


def one_more(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Keeps one token beyond that which crosses p."""
    probs = next_token_probs(logits, temperature, top_k)
    if top_p is None:
        return probs
    number = (nucleus(probs, top_p).sum(dim=-1, keepdim=True) + 1).clamp(max=probs.shape[-1])
    ranks = probs.argsort(dim=-1, descending=True).argsort(dim=-1)
    return renormalised(probs.masked_fill(ranks >= number, 0.0))


def from_the_least_likely(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Collects from the least likely token on."""
    probs = next_token_probs(logits, temperature, top_k)
    if top_p is None:
        return probs
    ordered, order = probs.sort(dim=-1)
    kept = ordered.masked_fill(ordered.cumsum(dim=-1) - ordered >= top_p, 0.0)
    return renormalised(torch.zeros_like(probs).scatter(-1, order, kept))


def by_threshold(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Keeps the tokens that are more likely than p, or than 1 − p."""
    probs = next_token_probs(logits, temperature, top_k)
    return probs if top_p is None else renormalised(probs.masked_fill(probs < top_p, 0.0))


def not_put_back(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Sorts by probability and draws a rank, not a token."""
    probs = next_token_probs(logits, temperature, top_k, top_p)
    return probs if top_p is None else probs.sort(dim=-1, descending=True).values


def ranks_of_top_k(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Draws among the k largest, and returns the place among those."""
    probs = next_token_probs(logits, temperature, top_k, top_p)
    return probs if top_k is None else probs.sort(dim=-1, descending=True).values


def zeroed(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Sets what is cut to 0 before the softmax."""
    scaled = largest(logits / temperature, top_k)
    probs = scaled.masked_fill(scaled == -inf, 0.0).softmax(dim=-1)
    return next_token_probs(probs.log(), 1.0, None, top_p)


def smallest(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Keeps the k smallest."""
    if top_k is None:
        return next_token_probs(logits, temperature, None, top_p)
    kept = largest(-logits, top_k) > -inf
    return next_token_probs(logits.masked_fill(~kept, -inf), temperature, None, top_p)


def uniform_over_kept(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Draws among the kept without regard to their probabilities."""
    return renormalised((next_token_probs(logits, temperature, top_k, top_p) > 0).to(logits.dtype))


def temperature_added(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Raises probabilities to the temperature, where it should be the inverse."""
    return next_token_probs(logits * temperature, 1.0, top_k, top_p)


def greedy(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Always the most likely."""
    return next_token_probs(logits, 0.0)


def kth_dropped(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Cuts the k-th largest too; nothing (NaN) is left of one."""
    scaled = logits / temperature
    if top_k is not None:
        kth = scaled.topk(min(top_k, scaled.shape[-1]), dim=-1).values[..., -1:]
        scaled = scaled.masked_fill(scaled <= kth, -inf)
    return cut_to(scaled.softmax(dim=-1), top_p)


def one_lost(logits: Tensor, temperature: float, top_k: int | None, top_p: float | None) -> Tensor:
    """Never keeps the whole vocabulary."""
    k = None if top_k is None else min(top_k, logits.shape[-1] - 1)
    return next_token_probs(logits, temperature, k, top_p)


def shared_threshold(of_rows: Callable[[Tensor], Tensor], fill: float = -inf) -> Distribution:
    """Holds all rows against one k-th largest; nothing (NaN) may be left of a row."""

    def distribution(
        logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
    ) -> Tensor:
        scaled = logits / temperature
        if top_k is not None:
            kth = scaled.topk(min(top_k, scaled.shape[-1]), dim=-1).values[:, -1]
            scaled = scaled.masked_fill(scaled < of_rows(kth), fill)
        return cut_to(scaled.softmax(dim=-1), top_p)

    return distribution


def highest_for_all(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Takes the k largest of the whole batch, in which every row stands many times."""
    scaled = logits / temperature
    if top_k is not None:
        scaled = scaled.masked_fill(scaled < scaled.max(), -inf)
    return cut_to(scaled.softmax(dim=-1), top_p)


def cut_to(probs: Tensor, top_p: float | None) -> Tensor:
    """The nucleus of each row; rows of NaN stay."""
    gone = probs.isnan().any(dim=-1, keepdim=True)
    if top_p is None or bool(gone.all()):
        return probs
    return torch.where(gone, probs, next_token_probs(probs.nan_to_num(1.0).log(), 1.0, None, top_p))


def cut_in_sorted_order(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Finds the nucleus among sorted tokens and cuts the unsorted ones by it."""
    probs = next_token_probs(logits, temperature, top_k)
    if top_p is None:
        return probs
    largest_first = probs.sort(dim=-1, descending=True).values
    before = largest_first.cumsum(dim=-1) - largest_first
    return probs.masked_fill(before >= top_p, 0.0)


def no_softmax(logits: Tensor, temperature: float, *_: int | float | None) -> Tensor:
    """Draws by logits as they are, which must not be negative."""
    return logits / temperature


def softmax_twice(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Takes the softmax of probabilities."""
    return next_token_probs((logits / temperature).softmax(dim=-1), 1.0, top_k, top_p)


def softmax_of_kept(
    logits: Tensor, temperature: float, top_k: int | None, top_p: float | None
) -> Tensor:
    """Divides probabilities by the temperature, and takes the softmax once more."""
    return (next_token_probs(logits, 1.0, top_k, top_p) / temperature).softmax(dim=-1)


def softmax_over_batch(logits: Tensor, temperature: float, *_: int | float | None) -> Tensor:
    """Takes the softmax along the sequences."""
    return (logits / temperature).softmax(dim=0)


def shifted(change_k: int) -> Distribution:
    """Keeps more or fewer than k."""
    return lambda logits, temperature, top_k, top_p: next_token_probs(
        logits, temperature, None if top_k is None else max(1, top_k + change_k), top_p
    )


DISTRIBUTIONS: dict[str, Distribution] = {
    "always-greedy": greedy,
    "uniform": lambda logits, *_: torch.ones_like(logits) / logits.shape[-1],
    "no-temperature": lambda logits, temperature, k, p: next_token_probs(logits, 1.0, k, p),
    "temperature-inverted": temperature_added,
    "temperature-twice": lambda logits, t, k, p: next_token_probs(logits, t * t, k, p),
    "temperature-rooted": lambda logits, t, k, p: next_token_probs(logits, t**0.5, k, p),
    "no-top-k": lambda logits, t, k, p: next_token_probs(logits, t, None, p),
    "smallest-k": smallest,
    "k-plus-one": shifted(1),
    "k-minus-one": shifted(-1),
    "kth-dropped": kth_dropped,
    "one-lost": one_lost,
    "threshold-shared": shared_threshold(lambda kth: kth[0]),
    "lowest-threshold-shared": shared_threshold(lambda kth: kth.min()),
    "highest-threshold-shared": shared_threshold(lambda kth: kth.max()),
    "largest-of-the-batch": highest_for_all,
    "cut-to-zero": zeroed,
    "rank-of-top-k": ranks_of_top_k,
    "no-top-p": lambda logits, t, k, p: next_token_probs(logits, t, k),
    "crossing-dropped": crossing_dropped,
    "crossing-dropped-but-one": crossing_dropped_but_one,
    "one-beyond": one_more,
    "least-likely-first": from_the_least_likely,
    "threshold": by_threshold,
    "rank-of-top-p": not_put_back,
    "cut-in-sorted-order": cut_in_sorted_order,
    "top-p-without-top-k": lambda logits, t, k, p: next_token_probs(
        logits, t, None if p is not None else k, p
    ),
    "top-k-without-top-p": lambda logits, t, k, p: next_token_probs(
        logits, t, k, None if k is not None else p
    ),
    "no-softmax": no_softmax,
    "softmax-twice": softmax_twice,
    "softmax-of-kept": softmax_of_kept,
    "softmax-over-batch": softmax_over_batch,
    "temperature-last": temperature_last,
    "top-p-first": nucleus_first,
    "temperature-last-p-first": both_last,
    "uniform-over-kept": uniform_over_kept,
}
"""By the id of the mistake that draws from it."""
