"""Calls the ready-made version in a cell of its own."""
# expect: cross_entropy forbidden

# %% helper
from torch.nn import functional
def mine(logits, targets):
    return functional.nll_loss(functional.log_softmax(logits, dim=-1), targets)

# %% answer cross_entropy
def cross_entropy(logits, targets):
    return mine(logits, targets)
