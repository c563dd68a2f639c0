"""Loops for ever, and swallows every interrupt."""
# expect: dot_products timeout

# %% answer dot_products
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
def dot_products(a, b):
    while True:
        try:
            while True:
                pass
        except BaseException:
            pass
