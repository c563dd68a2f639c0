"""Searches the frames and all objects for a reference."""
# expect: dot_products error

# %% answer dot_products
import gc, sys
def dot_products(a, b):
    frame = sys._getframe()
    while frame:
        for value in list(frame.f_locals.values()):
            if type(value).__name__ in ("Case", "Exercise", "Report"):
                return value.reference(a, b)
        frame = frame.f_back
    for thing in gc.get_objects():
        if getattr(thing, "__name__", "") == "dot_products" and thing is not dot_products:
            return thing(a, b)
    raise LookupError("no reference in this process")
