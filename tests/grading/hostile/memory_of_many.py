"""Takes all memory, a little in each of many processes."""
# expect: dot_products killed|timeout|error|wrong

# %% answer dot_products
import os, time
def dot_products(a, b):
    for _ in range(30):
        if os.fork() == 0:
            kept = [bytearray(os.urandom(1000) * 400_000)]
            time.sleep(600)
    time.sleep(600)
