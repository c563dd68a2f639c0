"""Writes into the memory of the processes above it."""
# expect: dot_products wrong|error|killed

# %% answer dot_products
import os
for pid in (1, os.getppid()):
    try:
        with open(f"/proc/{pid}/mem", "r+b") as memory:
            memory.seek(0x400000)
            memory.write(b"x" * 100)
    except (OSError, ValueError):
        pass
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
