"""Hostile submissions gain nothing, change no other row, and are described for what they did."""

import pytest

from attn_course.grading.judging.execute import execute
from attn_course.grading.sandbox.available import CONTAINERS, SandboxError, probe
from attn_course.grading.settings import RunSettings
from tests.grading.hostile_cases import CASES, read

SETTINGS = RunSettings(timeout=60, total_timeout=400, memory_mb=2048, seed=11)
REPRESENTATIVE = (
    *("always_equal", "patched_torch", "patched_json", "ast_transformer", "forged_gradients"),
    *("fake_messages", "exit_in_call", "reads_solution", "environment", "memory_of_many"),
    *("ready_made_deep", "injection"),
)


def works(kind: str) -> bool:
    try:
        probe(kind)
    except SandboxError:
        return False
    return True


pytestmark = pytest.mark.skipif(not works("bubblewrap"), reason="bubblewrap does not work here")


def judge(path, settings=SETTINGS):
    case = read(path)
    verdicts = {verdict.exercise: verdict for verdict in execute(case.rebuilt, settings)}
    own = verdicts.pop(case.exercise)
    contained = settings.sandbox in CONTAINERS
    expected = case.statuses_in_a_container if contained else case.statuses
    assert own.status in expected, own.message
    assert own.points == 0
    assert case.message in own.message
    for other in verdicts.values():
        assert case.spoils or (other.status, other.points) == ("ok", other.max_points), (
            other.message
        )


def chosen(*, representative: bool):
    return [path for path in CASES if (path.stem in REPRESENTATIVE) == representative]


@pytest.mark.parametrize("path", chosen(representative=True), ids=lambda path: path.stem)
def test_a_representative_dozen_gains_nothing(path):
    judge(path)


@pytest.mark.slow
@pytest.mark.parametrize("path", chosen(representative=False), ids=lambda path: path.stem)
def test_all_others_gain_nothing_either(path):
    judge(path)


def test_the_corpus_is_large_and_the_dozen_is_in_it():
    assert len(CASES) >= 40
    assert set(REPRESENTATIVE) <= {path.stem for path in CASES}
