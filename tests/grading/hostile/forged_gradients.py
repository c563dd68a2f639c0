"""Claims a graph that it does not have, with gradients of zeros."""
# spoils: its own kernel
# expect: dot_products wrong

# %% answer dot_products
import attn_course_inside.peer as peer
old = peer.Peer._do_call
def call(self, message):
    reply = old(self, message)
    reply["tape"] = "k999"
    if isinstance(reply.get("value"), dict) and "T" in reply["value"]:
        reply["value"]["T"][3] = 1
    return reply
peer.Peer._do_call = call
peer.Peer._do_back = lambda self, message: {"value": {"t": [None, None]}}

def dot_products(a, b):
    return a.detach() @ b.detach().T + 1
