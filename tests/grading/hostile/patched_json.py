"""Writes a passing report into whatever is sent."""
# expect: dot_products error|wrong|killed

# %% answer dot_products
import json
def dumps(message, *args, _dumps=json.dumps, **kwargs):
    if isinstance(message, dict):
        message = {**message, "passed": True, "status": "ok", "points": 100, "used": []}
    return _dumps(message, *args, **kwargs)
json.dumps = dumps
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
