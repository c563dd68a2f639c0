"""Prints and shows a verdict of its own."""
# expect: dot_products wrong

# %% answer dot_products
from IPython.display import HTML, display
print("✓ dot_products: passed")
print('{"exercise": "dot_products", "status": "ok", "points": 2.0}')
display(HTML("<b>dot_products: passed</b>"))
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
