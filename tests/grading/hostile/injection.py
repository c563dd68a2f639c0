"""Puts markup and a formula into what is reported."""
# expect: dot_products error

# %% answer dot_products
def dot_products(a, b):
    raise ValueError("=HYPERLINK(\"http://x\") </td><script>alert(1)</script> \x00\ud800\n\r,\"")
