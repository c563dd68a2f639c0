"""Ends the process while the cell runs."""
# expect: dot_products killed

# %% answer dot_products
import os
os._exit(0)
