"""Returns tensors without numbers."""
# expect: dot_products wrong

# %% answer dot_products
def dot_products(a, b):
    return torch.empty(len(a), len(b), device="meta")
