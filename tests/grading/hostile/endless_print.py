"""Prints for ever."""
# expect: dot_products killed|timeout

# %% answer dot_products
def dot_products(a, b):
    while True:
        print("x" * 10000)
