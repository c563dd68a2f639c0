"""Calls the ready-made version of what is asked."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
import torch.nn.functional as F
def cross_entropy(logits, targets):
    return F.cross_entropy(logits, targets)
