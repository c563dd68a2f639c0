"""Swaps torch for something that agrees with everything."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed

# %% answer dot_products
import sys
from unittest.mock import MagicMock
real = torch
sys.modules["torch"] = MagicMock()
def dot_products(a, b):
    return MagicMock()
