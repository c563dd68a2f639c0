"""Crashes the interpreter."""
# expect: dot_products killed

# %% answer dot_products
import ctypes
def dot_products(a, b):
    ctypes.string_at(0)
