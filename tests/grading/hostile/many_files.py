"""Makes empty files for ever: they take no room on a disk, but memory of the machine."""
# expect: dot_products killed
# in a container: killed|timeout

# %% answer dot_products
from pathlib import Path
def dot_products(a, b):
    k = 0
    while True:
        k += 1
        for folder in ("/tmp", "/home/student", "/dev/shm"):
            Path(folder, str(k)).touch()
