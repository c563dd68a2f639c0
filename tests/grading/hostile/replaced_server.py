"""Replaces what serves the check by nothing."""
# spoils: its own kernel
# expect: dot_products error|killed

# %% answer dot_products
import attn_course_inside.inside as inside
inside.serve = lambda *args, **kwargs: None
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
