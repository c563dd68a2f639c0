"""Says of all that it was sent, and of more, that it has changed."""
# spoils: its own kernel
# expect: dot_products error|wrong

# %% answer dot_products
import attn_course_inside.peer as peer, attn_course_inside.wire as wire
old = peer.Peer._do_call
def call(self, message):
    nothing = wire.write_tensor(torch.zeros(2, 2), 0)
    told = {"tensors": [["weight", nothing, nothing, True]], "modes": [True]}
    return {
        **old(self, message),
        "altered": [[k, nothing] for k in range(2)], "graded": [[-1, nothing], [0, nothing]],
        "state": {"t1": told, "k1": told, "answer:dot_products": told}, "used": [["x"]] * 10**4, "tape": "t1",
    }
peer.Peer._do_call = call
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
