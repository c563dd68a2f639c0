"""Breaks the shell: its runner, its traceback, its input."""
# spoils: its own kernel
# expect: dot_products error|wrong|killed|timeout

# %% answer dot_products
shell = get_ipython()
shell.showtraceback = lambda *args, **kwargs: None
type(shell).run_cell = lambda *args, **kwargs: None
shell.kernel.raw_input = lambda prompt="": "done"
def dot_products(a, b):
    return torch.zeros(len(a), len(b))
