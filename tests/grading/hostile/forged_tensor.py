"""Sends tensors whose shape, bytes and truth values do not fit."""
# spoils: its own kernel
# expect: dot_products error|wrong

# %% answer dot_products
import attn_course_inside.wire as wire
turn = 0
def forged(value, standing=None):
    global turn
    turn += 1
    return {"T": [["float32", [2**40, 2**40], "AAAA", 0, None], ["bool", [3], "AgID", 0, None],
                  ["object", [1], "AAAA", 0, None], ["float32", [1], "AAAAAA==", 0, [2**40]]][turn % 4]}
wire.write_tensor = forged
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
