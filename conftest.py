"""Notebooks are compared under the settings under which their outputs were made.

So that plain `pytest --nbval notebooks solutions` is right, from any folder.
"""

import os

import pytest

from attn_course.authoring.environment import EXECUTION_ENV

for name, value in EXECUTION_ENV.items():
    os.environ.setdefault(name, value)

collect_ignore_glob = ["*.mine*.ipynb"]  # somebody's own, which a build has kept


def pytest_configure(config: pytest.Config) -> None:
    """Find nbval's list of exceptions from any folder."""
    sanitize = config.getoption("--nbval-sanitize-with", None)
    if sanitize is not None:
        config.option.nbval_sanitize_with = str(config.rootpath / sanitize)
