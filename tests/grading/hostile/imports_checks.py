"""Takes the reference from the checks."""
# expect: dot_products error

# %% answer dot_products
import sys
for place in ("{project}", "/course", "/home"):
    sys.path.insert(0, place)
def dot_products(a, b):
    from attn_course.checks import get
    return get("dot_products").reference(a, b)
