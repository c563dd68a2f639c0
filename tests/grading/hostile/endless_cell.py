"""Loops for ever while the cell runs."""
# expect: dot_products timeout

# %% answer dot_products
while True:
    pass
