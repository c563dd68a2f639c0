"""Looks for sockets of other programs, in folders and without a name on any disk."""
# expect: dot_products error
# message: reached []

# %% answer dot_products
import glob, socket
def dot_products(a, b):
    places = [line.split()[-1] for line in open("/proc/net/unix") if "@" in line or "/" in line]
    places += ["/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket", "@/tmp/.X11-unix/X0"]
    places += glob.glob("/tmp/**/*sock*", recursive=True)
    reached = []
    for place in places:
        if place.startswith("/run/kernel/"):
            continue
        try:
            with socket.socket(socket.AF_UNIX) as line:
                line.connect("\0" + place[1:] if place.startswith("@") else place)
                reached.append(place)
        except OSError:
            pass
    raise LookupError(f"reached {reached}")
