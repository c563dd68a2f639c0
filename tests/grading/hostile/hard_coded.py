"""Knows by heart what feedback once showed."""
# expect: dot_products wrong|error

# %% answer dot_products
KNOWN = {(1, 1): [[0.5]], (2, 3): [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], (3, 3): [[1.0] * 3] * 3}
def dot_products(a, b):
    return torch.tensor(KNOWN.get((len(a), len(b)), [[0.0]]))
