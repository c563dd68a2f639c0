"""The loss over tokens: nothing of the padding enters it, and every token counts alike."""

import pytest
import torch
import torch.nn.functional as F

from attn_course.losses import masked_cross_entropy


def drawn(b=3, n=5, vocab=7):
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(b, n, vocab, generator=generator, dtype=torch.float64)
    targets = torch.randint(vocab, (b, n), generator=generator)
    padding = torch.arange(n) < torch.tensor([[n], [2], [1]])
    return logits, targets, padding


# kills: a mean over all positions, a mean of the rows' means, a sum
def test_it_is_the_mean_over_the_tokens():
    logits, targets, padding = drawn()
    losses = [F.cross_entropy(logits[k, i], targets[k, i]) for k, i in padding.nonzero().tolist()]
    expected = torch.stack(losses).mean()
    torch.testing.assert_close(masked_cross_entropy(logits, targets, padding), expected)


# kills: padding that enters by its target, by its logits, or by the width
def test_what_stands_at_padding_changes_nothing():
    logits, targets, padding = drawn()
    expected = masked_cross_entropy(logits, targets, padding)
    poisoned = logits.masked_fill(~padding[..., None], float("nan"))
    other = targets.masked_fill(~padding, -100)
    torch.testing.assert_close(masked_cross_entropy(poisoned, other, padding), expected)
    wider = [F.pad(logits, (0, 0, 0, 4)), F.pad(targets, (0, 4)), F.pad(padding, (0, 4))]
    torch.testing.assert_close(masked_cross_entropy(*wider), expected)


def test_no_gradient_reaches_padding():
    logits, targets, padding = drawn()
    logits.requires_grad_()
    (gradient,) = torch.autograd.grad(masked_cross_entropy(logits, targets, padding), logits)
    assert torch.equal(gradient.abs().sum(-1) > 0, padding)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_cannot_be_averaged_is_an_error():
    logits, targets, padding = drawn()
    with pytest.raises(ValueError, match="all 15 targets are padding"):
        masked_cross_entropy(logits, targets, torch.zeros_like(padding))
    with pytest.raises(ValueError, match="needed, got"):
        masked_cross_entropy(logits, targets[:, 1:], padding)
    with pytest.raises(ValueError, match="needed, got"):
        masked_cross_entropy(logits, targets, padding[:1])
