"""Calls itself for ever."""
# expect: dot_products error

# %% answer dot_products
import sys
def dot_products(a, b):
    return dot_products(a, b)
