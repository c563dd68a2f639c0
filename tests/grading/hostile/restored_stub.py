"""Deletes the course's stand-ins and looks behind them."""
# expect: dot_products error

# %% answer dot_products
import attn_course.primer as primer
def dot_products(a, b):
    return primer.__dict__["dot_products"](a, b)
