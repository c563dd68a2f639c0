"""Answers every question of the check by itself: all is right."""
# spoils: its own kernel
# expect: dot_products error|wrong

# %% answer dot_products
import attn_course_inside.peer as peer
peer.Peer.serve_one = lambda self, text: '{"op":"return","value":true,"passed":true}'
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
