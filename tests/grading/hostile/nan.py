"""Returns NaN, which equals nothing, not even itself."""
# expect: dot_products wrong

# %% answer dot_products
def dot_products(a, b):
    return torch.full((len(a), len(b)), float("nan"))
