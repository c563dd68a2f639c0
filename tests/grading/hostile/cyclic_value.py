"""Returns a list that contains itself."""
# expect: dot_products error|wrong

# %% answer dot_products
def dot_products(a, b):
    value = [1.0]
    value.append(value)
    return value
