"""Calls the ready-made operation below the functions."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
def cross_entropy(logits, targets):
    return getattr(torch.ops.aten, "cross_entropy" + "_loss")(logits, targets)
