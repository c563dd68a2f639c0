"""Losses that leave padding out."""

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor


def masked_cross_entropy(
    logits: Float[Tensor, "b n vocab"],
    targets: Int[Tensor, "b n"],
    padding: Bool[Tensor, "b n"],
) -> Float[Tensor, ""]:
    """Return the mean cross-entropy over the tokens that are no padding, in nats.

    Every token counts alike, so a long sequence counts for more than a short one, and how
    wide a batch is padded changes nothing.

    logits: unnormalised scores. targets: the right token at each position; at padded ones
        any number may stand.
    padding: True where the target is a token.

    Raises ValueError for shapes that do not fit, and if there is no token at all.
    """
    if not logits.shape[:2] == targets.shape == padding.shape:
        shapes = f"{tuple(logits.shape)}, {tuple(targets.shape)}, {tuple(padding.shape)}"
        raise ValueError(f"logits (b, n, vocab), targets and padding (b, n) needed, got {shapes}")
    if not padding.any():
        raise ValueError(f"all {padding.numel()} targets are padding: there is no loss to take")
    return F.cross_entropy(logits[padding], targets[padding])
