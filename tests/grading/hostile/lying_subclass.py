"""Returns a tensor whose every comparison is true."""
# expect: dot_products wrong

# %% answer dot_products
class Right(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        if func.__name__ in ("equal", "allclose", "isclose", "eq", "__eq__", "all"):
            return True
        return super().__torch_function__(func, types, args, kwargs or {})

def dot_products(a, b):
    return torch.zeros(len(a), len(b)).as_subclass(Right)
