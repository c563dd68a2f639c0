"""Calls the ready-made version with the notes on what is called switched off."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
from torch._C import DisableTorchFunction
from torch.nn.functional import *
ready = cross_entropy
def cross_entropy(logits, targets):
    with DisableTorchFunction():
        return ready(logits, targets)
