"""Takes all memory when the grader is at work elsewhere."""
# spoils: its own kernel
# expect: dot_products wrong|killed

# %% answer dot_products
import os, time
def dot_products(a, b):
    for _ in range(6):
        if os.fork() == 0:
            time.sleep(1)
            held = bytearray(b"x" * 10**9)
            time.sleep(600)
    return torch.zeros(len(a), len(b))
