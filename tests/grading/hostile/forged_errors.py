"""Claims errors that no answer can raise, and objects of impossible names."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed

# %% answer dot_products
import json
turn = 0
FORGED = [
    {"op": "raise", "kind": "KeyboardInterrupt", "bases": ["KeyboardInterrupt", "SystemExit"], "text": "stop"},
    {"op": "raise", "kind": "KernelGone", "bases": ["BaseException"], "text": "ok", "line": "x" * 10**6, "own": 1},
    {"op": "raise", "kind": ["a"], "bases": "OSError", "text": {"a": 1}, "line": ["a"]},
    {"op": "return", "value": {"o": "a\0b"}}, {"op": "return", "value": {"o": "\ud800"}},
    {"op": "return", "value": {"R": "k7", "kind": "Tensor\0", "calls": True}},
    {"op": "return", "value": {"R": "k8", "module": {"class": "x", "layers": [["a.b", "Linear", {}]], "names": [], "modes": [], "tensors": {"l": []}}}},
    {"op": "return", "value": {"parts": {"d": [["a", {"R": "k9", "calls": True}]]}, "kind": "Sequential"}},
    {"op": "back", "tape": "t1", "grads": {"t": []}}, {"op": "put", "key": "t1", "path": "", "value": None},
]
def dot_products(a, b):
    global turn
    turn += 1
    return get_ipython().kernel.raw_input(json.dumps(FORGED[turn % len(FORGED)]))
