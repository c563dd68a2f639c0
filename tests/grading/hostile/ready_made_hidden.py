"""Calls the ready-made version by a name put together."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
import torch.nn.functional as F
def cross_entropy(logits, targets):
    return F.__dict__["cross" + "_entropy"](logits, targets)
