"""Raises what is rarely caught, by turns, under names that are none."""
# expect: dot_products error|wrong|killed

# %% answer dot_products
turn = 0
class Mute(Exception):
    def __str__(self): raise KeyboardInterrupt
    __repr__ = __str__
ODD = [KeyboardInterrupt("a"), GeneratorExit("b"), StopIteration("c"), SystemExit(0), Mute(), MemoryError(),
       type("class", (BaseException,), {})("d"), type("", (Exception,), {"__module__": "builtins"})("e"),
       BaseExceptionGroup("f", [KeyboardInterrupt()]), RecursionError("g"), AssertionError("✓ passed")]
def dot_products(a, b):
    global turn
    turn += 1
    raise ODD[turn % len(ODD)]
