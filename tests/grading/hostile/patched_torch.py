"""Makes torch find everything equal."""
# expect: dot_products wrong

# %% answer dot_products
torch.equal = torch.allclose = lambda *args, **kwargs: True
torch.isclose = torch.eq = lambda a, b, *args, **kwargs: torch.ones_like(a).bool()
torch.Tensor.__eq__ = lambda self, other: torch.ones(()).bool()
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
