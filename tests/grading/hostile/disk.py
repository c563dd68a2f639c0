"""Fills every disk that it finds."""
# expect: dot_products wrong|error|killed

# %% answer dot_products
import os
def dot_products(a, b):
    for folder in ("/tmp", "/home/student", "/run/kernel", "/dev/shm", "/course", "/"):
        for k in range(100):
            try:
                with open(f"{folder}/fill{k}", "wb") as file:
                    for _ in range(100):
                        file.write(b"x" * 10**7)
            except OSError:
                pass
    return torch.zeros(len(a), len(b))
