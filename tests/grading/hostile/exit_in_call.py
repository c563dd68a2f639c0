"""Ends the process when it is called."""
# expect: dot_products killed

# %% answer dot_products
import os
def dot_products(a, b):
    os._exit(0)
