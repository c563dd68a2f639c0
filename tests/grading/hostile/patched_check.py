"""Replaces the course's check functions."""
# expect: dot_products wrong

# %% answer dot_products
import attn_course
attn_course.check = lambda *args, **kwargs: True
try:
    import attn_course.checks.judging as judging
    judging.judge = lambda *args: True
except ImportError:
    pass
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
