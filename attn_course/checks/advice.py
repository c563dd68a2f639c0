"""What to do about the errors that PyTorch and Python raise most often in answers.

An error's own text is no sentence of the course, so it may be searched. Each advice is true
wherever its pattern is found; the error itself is shown beside it.
"""

from __future__ import annotations

import re

ADVICE: tuple[tuple[str, str, str], ...] = (
    (
        "RuntimeError",
        r"does not require grad and does not have a grad_fn",
        "Nothing that the gradient is taken of was computed from a tensor with requires_grad: call "
        "`x.requires_grad_()` before computing, and do not detach on the way",
    ),
    (
        "AttributeError",
        r"'(tuple|torch\.return_types\.\w+)' object has no attribute",
        "A pair has come where a tensor is meant: `torch.autograd.grad` gives a tuple, "
        "`scores.max(dim)` values and indices, `nn.GRU` outputs and state. Take the part that you "
        "mean, as in `[0]`; `amax` gives the values alone",
    ),
    (
        "TypeError",
        r"unsupported operand type\(s\) .*'(torch\.return_types\.\w+|tuple)'",
        "A pair has come where a tensor is meant: `scores.max(dim)` gives values and indices. Take "
        "the part that you mean, as in `[0]`; `amax` gives the values alone",
    ),
    (
        "ValueError",
        r"step must be greater than zero",
        "A tensor takes no negative step, as in `[::-1]`: `flip` turns an axis round",
    ),
    (
        "(ValueError|RuntimeError|TypeError)",
        r"only one element tensors can be converted|a Tensor with \d+ elements cannot be converted",
        "A function for single numbers was given a tensor: torch has its own, `torch.exp` in place "
        "of `math.exp`",
    ),
    (
        "RuntimeError",
        r"Boolean value of Tensor with more than one value is ambiguous",
        "A tensor of several numbers is neither true nor false: `if`, `and`, `or`, `max(0, x)` ask "
        "for one. `torch.where`, `&`, `|` and `x.clamp(min=0)` work on each",
    ),
    (
        "RuntimeError",
        r"mat1 and mat2 shapes cannot be multiplied",
        "In a product the last size on the left must be the last but one on the right. In a layer "
        "the left is what it is given, the right is in_features × out_features",
    ),
    (
        "RuntimeError",
        r"Expected size for first two dimensions of batch2 tensor|batch1 and batch2|"
        r"Expected batch2_sizes",
        "In a product of batches the leading sizes must agree, and the last on the left with the "
        "last but one on the right. `.T` turns all axes round; `.mT` exchanges the last two",
    ),
    (
        "RuntimeError",
        r"The size of tensor a \(\d+\) must match the size of tensor b \(\d+\)",
        "Shapes are laid against each other from the right, and sizes there must be equal or 1. "
        "`[:, None]` or `rearrange` puts an axis of size 1 where one is missing",
    ),
    (
        "RuntimeError",
        r"view size is not compatible",
        "`view` cannot follow axes that were exchanged: `rearrange` or `reshape` can",
    ),
    (
        "RuntimeError",
        r"a leaf Variable that requires grad is being used in an in-place operation",
        "`x += …` writes into what is to get a gradient: `x = x + …` makes a new tensor",
    ),
    (
        "RuntimeError",
        r"modified by an inplace operation",
        "Something that the backward pass needs was written over: `x = x + …` in place of `x += …`",
    ),
    (
        "AttributeError",
        r"cannot assign (module|parameters?) before Module.__init__\(\) call",
        "`super().__init__()` has to come first in `__init__`",
    ),
    (
        "EinopsError",
        r"Wrong shape|Input is",
        "The pattern has another number of axes than the tensor. `...` in the pattern stands for "
        "any number of leading axes",
    ),
    (
        "RuntimeError",
        r"expected m1 and m2 to have the same dtype|expected scalar type|"
        r"same dtype",
        "Two dtypes meet. Make new tensors with those of the inputs: `zeros_like`, `dtype=x.dtype`",
    ),
    (
        "NameError",
        r"is not defined",
        "Was the cell run that defines or imports it? Inside a class it needs `self.`",
    ),
    (
        "UnboundLocalError",
        r"",
        "On the way that was taken nothing was assigned to it before it was read",
    ),
)
"""The error's type, what its text matches, and what to do."""


def advice(kind: str, text: str) -> str | None:
    """Return what to do about an error of this type with this text; None where nothing is known."""
    return next(
        (
            told
            for of_kind, pattern, told in ADVICE
            if re.fullmatch(of_kind, kind) and re.search(pattern, text)
        ),
        None,
    )
