"""Events: who tells does not know who listens, and what was told is heard all the same."""

import json
import os
import subprocess
import sys
from importlib import import_module

from attn_course.events import LISTENERS

A_CHECK = """
import sys
from attn_course.checks import check
print("attn_course.learner.progress" in sys.modules)
check(lambda scores, dim=-1: scores, "softmax")

def softmax(scores, dim=-1):
    powers = (scores - scores.amax(dim, keepdim=True)).exp()
    return powers / powers.sum(dim, keepdim=True)

check(softmax)
"""


def test_every_listener_is_a_function():
    for listeners in LISTENERS.values():
        for module, function in listeners:
            assert callable(getattr(import_module(module), function))


# kills: checks that record only once something else has imported progress
def test_an_attempt_is_recorded_without_anybody_having_asked_for_progress(tmp_path):
    file = tmp_path / "progress.json"
    environment = os.environ | {"ATTN_COURSE_PROGRESS": str(file)}
    done = subprocess.run(
        [sys.executable, "-c", A_CHECK],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith("False\n")
    recorded = json.loads(file.read_text())["exercises"]
    assert recorded == {"softmax": {"attempts": 2, "passed": True}}
