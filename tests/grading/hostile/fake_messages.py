"""Sends results of its own on every channel of the kernel."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed

# %% answer dot_products
import threading, time
def send():
    kernel = get_ipython().kernel
    content = {"status": "ok", "prompt": '{"op":"return","value":true}', "passed": True, "value": "done"}
    while True:
        for socket in (kernel.iopub_socket, kernel.stdin_socket):
            for kind in ("execute_reply", "input_request", "status", "verdict"):
                try:
                    kernel.session.send(socket, kind, content, kernel.get_parent("shell"))
                except Exception:
                    pass
        time.sleep(0.01)
threading.Thread(target=send, daemon=True).start()
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
