"""Sends a message that no parser can end."""
# expect: dot_products error|wrong|killed

# %% answer dot_products
def dot_products(a, b):
    return get_ipython().kernel.raw_input("[" * 1_000_000)
