"""Returns more numbers than fit anywhere."""
# expect: dot_products error|wrong

# %% answer dot_products
def dot_products(a, b):
    return torch.zeros(1).expand(10**7, 10**5)
