"""Forks for ever."""
# expect: dot_products killed|timeout|error|wrong

# %% answer dot_products
import os
def dot_products(a, b):
    while True:
        os.fork()
