"""Calls the ready-made version in a process of its own, gradient included."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
import os, pickle
from torch.nn.functional import *
ready = cross_entropy
def cross_entropy(logits, targets):
    out, into = os.pipe()
    if os.fork() == 0:
        leaf = logits.detach().requires_grad_()
        loss = ready(leaf, targets)
        loss.backward()
        os.write(into, pickle.dumps((loss.item(), leaf.grad.tolist())))
        os._exit(0)
    value, gradient = pickle.loads(os.read(out, 60_000))
    linear = (logits * torch.tensor(gradient, dtype=logits.dtype)).sum()
    return value + linear - linear.detach()
