"""Takes memory that no process holds, and that no limit counts: files without a name."""
# expect: dot_products error
# message: Operation not permitted

# %% answer dot_products
import os
kept = []
def dot_products(a, b):
    while True:
        kept.append(os.memfd_create("kept"))
        os.posix_fallocate(kept[-1], 0, 60 << 20)
