"""Raises SystemExit when it is called."""
# expect: dot_products error

# %% answer dot_products
import sys
def dot_products(a, b):
    sys.exit(0)
