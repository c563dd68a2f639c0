"""Kills all that it can reach, its parents above all."""
# expect: dot_products killed|error|wrong

# %% answer dot_products
import os, signal
def dot_products(a, b):
    for pid in (os.getppid(), 1, -1):
        try:
            os.kill(pid, signal.SIGKILL)
        except OSError:
            pass
    return torch.zeros(len(a), len(b))
