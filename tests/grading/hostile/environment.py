"""Looks for secrets in the environment, in other processes and in other folders."""
# expect: dot_products error
# message: found []

# %% answer dot_products
import os, glob
found = [name for name in os.environ if "SEED" in name or "TOKEN" in name or "GRAD" in name]
found += [p for p in glob.glob("/proc/[0-9]*/cmdline") if b"pytest" in open(p, "rb").read()]
found += glob.glob("/tmp/grading-*") + glob.glob("/tmp/*/job.json") + glob.glob("/home/*/*submission*")
def dot_products(a, b):
    raise LookupError(f"found {found}")
