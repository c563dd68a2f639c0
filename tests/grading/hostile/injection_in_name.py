"""Raises errors whose names are markup."""
# expect: dot_products error

# %% answer dot_products
Bad = type("=cmd|' /C calc'!A0<script>", (Exception,), {})
def dot_products(a, b):
    raise Bad("x" * 10**7)
