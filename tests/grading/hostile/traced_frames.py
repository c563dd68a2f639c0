"""Traces what serves the check, and rewrites what its functions hold and return."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed

# %% answer dot_products
import ctypes, sys, threading
def trace(frame, event, arg):
    if frame.f_code.co_name in ("encode", "_do_call", "serve_one", "dumps") and event in ("call", "line"):
        for name, value in list(frame.f_locals.items()):
            if isinstance(value, torch.Tensor):
                frame.f_locals[name] = torch.ones_like(value)
            elif isinstance(value, dict) and "op" in value:
                value["passed"], value["value"] = True, True
        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
    return trace
threading.settrace(trace)
sys.settrace(trace)
def dot_products(a, b):
    sys.settrace(trace)
    return torch.zeros(len(a), len(b))
