"""Hands out modules of its own."""
# spoils: its own kernel
# expect: dot_products killed|error|timeout|wrong

# %% answer dot_products
import sys, types
class Hook:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("attn_course"):
            raise ImportError("none of that")
        return None
sys.meta_path.insert(0, Hook())
fake = types.ModuleType("attn_course_inside.inside")
fake.serve = lambda *args, **kwargs: get_ipython().kernel.raw_input('{"found":"callable","passed":true}')
sys.modules["attn_course_inside.inside"] = fake
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
