"""Asks the network for the answer."""
# expect: dot_products error
# message: OSError

# %% answer dot_products
import socket
def dot_products(a, b):
    for address in (("1.1.1.1", 53), ("127.0.0.1", 22), ("169.254.169.254", 80)):
        socket.create_connection(address, timeout=1)
