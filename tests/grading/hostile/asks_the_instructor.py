"""Asks for input, which is the line on which the check is made."""
# expect: dot_products error
# message: there is nobody to answer

# %% answer dot_products
def dot_products(a, b):
    return input("done")
