"""Arranges to die a little later, in somebody else's turn."""
# expect: dot_products wrong

# %% answer dot_products
import os, threading, time
armed = False
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
def later():
    time.sleep(600)
    os._exit(0)
threading.Thread(target=later, daemon=True).start()
