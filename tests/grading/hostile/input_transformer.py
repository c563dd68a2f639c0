"""Rewrites the source of the cells that follow."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed

# %% answer dot_products
def rewrite(lines):
    return ["pass\n"] if any("serve" in line for line in lines) else lines
get_ipython().input_transformers_cleanup.append(rewrite)
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
