"""Takes memory that outlives what made it: segments of System V."""
# expect: dot_products error
# message: 0 made, errno 1

# %% answer dot_products
import ctypes
system = ctypes.CDLL(None, use_errno=True)
def dot_products(a, b):
    made = [system.shmget(0, 100 << 20, 0o1600) for _ in range(100)]
    raise OSError(f"{sum(number >= 0 for number in made)} made, errno {ctypes.get_errno()}")
