"""Takes the solution from the course's package, without its name."""
# expect: dot_products error|wrong

# %% answer dot_products
import importlib
dot_products = getattr(importlib.import_module("attn" + "_course.primer"), "dot" + "_products")
