"""Returns a number of a million digits."""
# expect: dot_products wrong|error

# %% answer dot_products
def dot_products(a, b):
    return 10 ** 10**6
