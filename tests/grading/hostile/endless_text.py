"""Raises an error whose text takes for ever."""
# expect: dot_products timeout

# %% answer dot_products
class Slow(Exception):
    def __str__(self):
        while True:
            pass
def dot_products(a, b):
    raise Slow()
