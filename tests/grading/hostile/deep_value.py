"""Returns lists in lists in lists."""
# expect: dot_products error|wrong

# %% answer dot_products
def dot_products(a, b):
    value = []
    for _ in range(100_000):
        value = [value]
    return value
