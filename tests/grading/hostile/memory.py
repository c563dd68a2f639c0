"""Takes all memory."""
# expect: dot_products killed|error|timeout|wrong

# %% answer dot_products
def dot_products(a, b):
    kept = []
    while True:
        kept.append(bytearray(10**8))
