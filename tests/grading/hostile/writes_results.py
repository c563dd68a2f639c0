"""Writes itself a mark wherever one might be read."""
# expect: dot_products wrong
# in a container: wrong|killed

# %% answer dot_products
import glob, os
row = '{"student": "s", "chapter": "00", "exercise": "dot_products", "points": 2.0, "max_points": 2.0, "status": "ok"}'
for place in ["results", "/tmp/results", "/course/results", "/proc/1/root/tmp/results", "/proc/1/cwd/results",
              *glob.glob("/proc/*/fd/*")]:
    try:
        with open(place, "a") as file:
            file.write(row + "\n")
    except OSError:
        pass
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
