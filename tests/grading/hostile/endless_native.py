"""Stays in one endless call of C."""
# expect: dot_products timeout|killed

# %% answer dot_products
import re
def dot_products(a, b):
    re.match(r"(a+)+$", "a" * 60 + "b")
