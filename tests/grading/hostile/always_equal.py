"""Returns an object that says yes to every comparison."""
# expect: dot_products wrong|error

# %% answer dot_products
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __bool__(self): return True
    def __getattr__(self, name): return Yes()
    def __call__(self, *args, **kwargs): return Yes()
    def __iter__(self): return iter(())
    def __float__(self): return 0.0
    __hash__ = object.__hash__

def dot_products(a, b):
    return Yes()
