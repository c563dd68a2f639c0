"""Known mistakes that many exercises share, each written once, as an edit of a line they share.

A right answer that attends has these lines, in a module that knows `torch`, `inf` and `sqrt`:

    scores = query / sqrt(query.shape[-1]) @ key.mT
    hidden = torch.zeros_like(scores, dtype=torch.bool) if mask is None else ~mask
    empty = hidden.all(dim=-1, keepdim=True)
    scores = scores.masked_fill(hidden & ~empty, -inf)
    weights = scores.softmax(dim=-1).masked_fill(empty, 0.0)
    output = weights @ value
    return output, weights

Each table says which of them it edits; an answer without a mask leaves out what is about it.
"""
