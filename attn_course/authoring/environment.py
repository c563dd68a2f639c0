"""The settings under which stored outputs are made, and under which they are compared.

Light on purpose: the tests' configuration reads it before anything else is imported.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

# One thread: sums are taken in one order, and small trainings are not slowed by others.
EXECUTION_ENV = {
    "ATTN_COURSE_PROGRESS": ":memory:",
    "ATTN_COURSE_DEVICE": "cpu",
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


@contextmanager
def execution_environment() -> Iterator[None]:
    """Put the settings into this process, for the kernels it starts, and take them out again."""
    # a backend chosen for this process would keep a kernel from drawing into its notebook
    before = {name: os.environ.get(name) for name in [*EXECUTION_ENV, "MPLBACKEND"]}
    os.environ.update(EXECUTION_ENV)
    os.environ.pop("MPLBACKEND", None)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
