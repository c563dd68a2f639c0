"""Asks the grader's side for what it holds: objects, methods, copies, the reference."""
# expect: dot_products error
# message: nothing

# %% answer dot_products
import json
OPERATIONS = [
    {"op": op, "key": key, "name": name, "path": name, "args": {"t": []}, "kwargs": {"d": []}, "value": None}
    for op in ("get", "call", "copy", "put")
    for key in ("t1", "t2", "k1", "answer:dot_products", "answer:it", "")
    for name in ("", "reference", "__class__", "__globals__", "forward", "exercise")
]
def dot_products(a, b):
    found = []
    for operation in OPERATIONS:
        answered = json.loads(get_ipython().kernel.raw_input(json.dumps(operation)))
        if answered.get("op") != "raise":
            found.append(answered)
    raise LookupError(f"found {found or 'nothing'}")
