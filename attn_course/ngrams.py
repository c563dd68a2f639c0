"""Counting as a language model: n-grams with interpolation, the baseline that needs no training."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import log

from jaxtyping import Int
from torch import Tensor


class NGramModel:
    """Predicts a token from the n − 1 before it, by counts of all orders up to n.

    Witten–Bell interpolation (Bell, Cleary and Witten 1990, method C; Chen and Goodman 1998,
    section 2.5). For a context h that was followed by N(h) tokens, T(h) different ones:

        p(w | h) = (c(h w) + T(h) · p(w | h without its first token)) / (N(h) + T(h))

    The more different tokens a context has shown, the more is left to the shorter one. The
    recursion ends at 1 / vocab_size, so that no token has probability 0.
    """

    def __init__(self, vocab_size: int, order: int) -> None:
        """Make an empty model; order 1 counts tokens alone.

        Raises ValueError for a size below 1.
        """
        if vocab_size < 1 or order < 1:
            raise ValueError(f"vocab_size={vocab_size} and order={order} must be at least 1")
        self.vocab_size, self.order = vocab_size, order
        self._counts: dict[tuple[int, ...], Counter[int]] = defaultdict(Counter)
        self._totals: Counter[tuple[int, ...]] = Counter()

    def fit(self, ids: Int[Tensor, " n"]) -> "NGramModel":
        """Count all contexts of up to order − 1 tokens; return the model itself.

        Raises ValueError for an id that is outside the vocabulary.
        """
        tokens = self._checked(ids)
        for length in range(self.order):
            for end in range(length, len(tokens)):
                context = tuple(tokens[end - length : end])
                self._counts[context][tokens[end]] += 1
        self._totals = Counter({h: sum(seen.values()) for h, seen in self._counts.items()})
        return self

    def prob(self, token: int, context: Sequence[int]) -> float:
        """Return p(token | context), of which only the last order − 1 tokens are read."""
        read = tuple(context)[max(0, len(context) - self.order + 1) :]
        prob = 1 / self.vocab_size
        for start in range(len(read), -1, -1):  # from the empty context to the longest
            seen = self._counts.get(read[start:])
            if seen is None:
                break  # what was never seen has no longer version that was
            prob = (seen[token] + len(seen) * prob) / (self._totals[read[start:]] + len(seen))
        return prob

    def loss(self, windows: Int[Tensor, "b n"], targets: Int[Tensor, "b n"]) -> float:
        """Return the mean of −log p(target | its window so far), in nats.

        A context does not reach over the start of its window: the models that it is compared
        with do not see further either.
        """
        rows = zip(windows.tolist(), targets.tolist(), strict=True)
        surprises = [
            -log(self.prob(target, row[max(0, t + 2 - self.order) : t + 1]))
            for row, wanted in rows
            for t, target in enumerate(wanted)
        ]
        return sum(surprises) / len(surprises)

    def _checked(self, ids: Tensor) -> list[int]:
        tokens = ids.tolist()
        if tokens and not 0 <= min(tokens) <= max(tokens) < self.vocab_size:
            raise ValueError(
                f"ids from {min(tokens)} to {max(tokens)} do not fit a vocabulary of "
                f"{self.vocab_size}"
            )
        return tokens
