"""Calls the ready-made version in a thread, where nobody notes what is called."""
# expect: cross_entropy forbidden

# %% answer cross_entropy
import torch.nn.functional as F
from concurrent.futures import ThreadPoolExecutor
def cross_entropy(logits, targets):
    ready = getattr(F, "cross" + "_entropy")
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(ready, logits, targets).result()
