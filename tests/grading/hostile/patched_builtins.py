"""Makes all() and any() say what is wanted."""
# spoils: its own kernel
# expect: dot_products wrong|error

# %% answer dot_products
import builtins
builtins.all = lambda *args: True
builtins.any = lambda *args: False
builtins.abs = lambda x: 0
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
