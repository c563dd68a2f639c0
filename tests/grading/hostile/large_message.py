"""Returns as much as it may, many times."""
# expect: dot_products error|wrong|killed|timeout

# %% answer dot_products
def dot_products(a, b):
    return tuple(torch.zeros(4_000_000) for _ in range(50))
