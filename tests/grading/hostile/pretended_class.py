"""Returns an object that claims to be a tensor."""
# expect: dot_products wrong|error

# %% answer dot_products
class Pretender:
    __class__ = torch.Tensor
    shape = torch.Size([3, 3])
    dtype = torch.float32
    requires_grad = False
    def __getattr__(self, name): return lambda *args, **kwargs: self

def dot_products(a, b):
    return Pretender()
