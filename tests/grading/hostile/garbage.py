"""Floods the channels with what is no message."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed|timeout

# %% answer dot_products
import zmq
def dot_products(a, b):
    kernel = get_ipython().kernel
    ident = kernel.get_parent("shell").get("header", {}).get("session", "").encode()
    for k in range(3000):
        for socket in (kernel.stdin_socket,):
            try:
                socket.send_multipart([ident, b"<IDS|MSG>", b"x", b"{", b"[" * 1000, b"", b""], zmq.NOBLOCK)
            except Exception:
                pass
    return torch.zeros(len(a), len(b))
