"""Leaves a daemon behind that keeps writing and answering."""
# expect: dot_products wrong

# %% answer dot_products
import os, time
def dot_products(a, b):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.environ["ATTN_COURSE_HOSTILE"] = "daemon"
            while True:
                time.sleep(0.01)
        os._exit(0)
    return torch.zeros(len(a), len(b))
