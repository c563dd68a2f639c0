"""Starts threads for ever."""
# expect: dot_products killed|timeout|error|wrong

# %% answer dot_products
import threading, time
def dot_products(a, b):
    while True:
        threading.Thread(target=time.sleep, args=(600,), daemon=True).start()
