"""Looks for the solution on the disk and runs it."""
# expect: dot_products error

# %% answer dot_products
import os
def search():
    places = ("/course", "/home", "/tmp", "/run", "/etc", "{project}/chapters", "/proc/1/root/tmp")
    for folder, _, files in (found for place in places for found in os.walk(place)):
        for name in files:
            if name.endswith((".py", ".ipynb")):
                try:
                    text = open(os.path.join(folder, name)).read()
                except (OSError, UnicodeDecodeError):
                    continue
                if "def dot_products" in text and "NotImplementedError" not in text:
                    return text
    raise LookupError("no solution on this disk")

def dot_products(a, b):
    names = {}
    exec(search(), names)
    return names["dot_products"](a, b)
