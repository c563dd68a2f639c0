"""The browser, JupyterLab and the old notebook are started by one worker of pytest-xdist."""

import pytest


# kills: a hook that marks after xdist has read the marks; a pytest whose ids xdist cannot mark
def test_group_reaches_the_workers(request: pytest.FixtureRequest):
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("there is one process; needs pytest -n 2 --dist loadgroup")
    assert request.node.nodeid.endswith("@browser")
