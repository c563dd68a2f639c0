"""Notebooks in a real sandbox: what is right counts, what breaks costs its exercise only."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from attn_course.checks import get
from attn_course.grading.judging import execute as execution
from attn_course.grading.judging.assess import seed_for
from attn_course.grading.judging.execute import execute
from attn_course.grading.rebuilt import Rebuilt, RebuiltCell, Settled
from attn_course.grading.sandbox.processes import tree
from attn_course.grading.settings import RunSettings
from attn_course.grading.workers import attempt
from attn_course.sentences import spoken
from tests.grading.test_hostile import pytestmark  # noqa: F401 (the same condition)

SETTINGS = RunSettings(timeout=30, total_timeout=200, memory_mb=2048, seed=3)

RIGHT = {
    "rnn_step": "def rnn_step(x, h, W_x, W_h, b):\n    return torch.tanh(x @ W_x + h @ W_h + b)",
    "run_rnn": """
from attn_course.recurrent import rnn_step as step

def run_rnn(inputs, h0, W_x, W_h, b):
    states = []
    for x in inputs.unbind(dim=1):
        h0 = rnn_step(x, h0, W_x, W_h, b)
        states.append(h0)
    return torch.stack(states, dim=1)
""",
    "gradient_by_distance": """
def gradient_by_distance(run, inputs):
    inputs = inputs.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(run(inputs)[:, -1].sum(), inputs)
    return gradient.norm(dim=-1).mean(dim=0).flip(0)
""",
}


def notebook(chapter, answers, *, helpers=(), settled=None, setup="import torch"):
    """A chapter with these answers, in order, by name."""
    cells = [RebuiltCell("setup", setup), *(RebuiltCell("helper", source) for source in helpers)]
    for name, source in answers.items():
        task = get(name)
        if source is not None:
            cells.append(RebuiltCell("answer", source, name, task.number, task.points))
        cells.append(RebuiltCell("check", "", name, task.number, task.points))
    return Rebuilt("anna", chapter, tuple(cells), (), settled or {})


def verdicts(*args, settings=SETTINGS, **kwargs):
    return {v.exercise: v for v in execute(notebook(*args, **kwargs), settings)}


@pytest.mark.parametrize("change", ["cells", "run", "exercise"])
def test_an_answer_that_is_changed_meets_other_inputs(change):
    first = notebook("01", RIGHT)
    second = notebook("01", RIGHT, helpers=["seen = 0.73"])
    seed = seed_for(3, "rnn_step", first.code)
    assert seed == seed_for(3, "rnn_step", replace(first, student="ben").code)
    others = {
        "cells": seed_for(3, "rnn_step", second.code),
        "run": seed_for(4, "rnn_step", first.code),
        "exercise": seed_for(3, "run_rnn", first.code),
    }
    assert seed != others[change]


def test_right_answers_get_all_points():
    made = verdicts("01", RIGHT)
    assert {name: (v.status, v.points) for name, v in made.items()} == {
        name: ("ok", get(name).points) for name in RIGHT
    }
    assert all(passed for _, passed in made["run_rnn"].detail["stages"])


def test_wrong_answers_are_named_and_later_ones_stand_on_their_own():
    wrong = "def rnn_step(x, h, W_x, W_h, b):\n    return x @ W_x + h @ W_h + b"
    made = verdicts("01", {**RIGHT, "rnn_step": wrong})
    assert made["rnn_step"].status == "wrong"
    assert made["rnn_step"].mistake is not None
    assert made["run_rnn"].status == "ok"
    assert "rnn_step" in spoken(made["run_rnn"].notes[0])


def test_partial_credit_follows_the_stages():
    overflows = (
        "def cross_entropy(logits, targets):\n"
        "    log_probs = (logits.exp() / logits.exp().sum(-1, keepdim=True)).log()\n"
        "    return -log_probs[torch.arange(len(targets)), targets].mean()"
    )
    made = verdicts("00", {"cross_entropy": overflows})["cross_entropy"]
    assert made.status == "wrong"
    assert 0 < made.points < made.max_points
    stages = dict(made.detail["stages"])
    assert stages["several rows"]
    assert not stages["large logits"]


def test_what_breaks_costs_its_own_exercise_only():
    made = verdicts(
        "01",
        {
            "rnn_step": "import os\n\ndef rnn_step(*args):\n    os.kill(os.getpid(), 9)",
            "run_rnn": "def run_rnn(:",
            "gradient_by_distance": RIGHT["gradient_by_distance"],
        },
        helpers=("x = 1 / 0", "%matplotlib inline", "def unused(): pass"),
    )
    assert made["rnn_step"].status == "killed"
    assert made["run_rnn"].status == "error"
    assert "SyntaxError" in made["run_rnn"].message
    assert made["gradient_by_distance"].status == "ok"


def test_a_loop_ends_at_its_limit():
    settings = RunSettings(timeout=20, total_timeout=200, seed=1)
    started = time.monotonic()
    loop = {"dot_products": "while True: pass", "cross_entropy": HONEST_LOSS}
    made = verdicts("00", loop, settings=settings)
    assert made["dot_products"].status == "timeout"
    assert made["cross_entropy"].status == "ok"
    assert time.monotonic() - started < 200


HONEST_LOSS = """
def cross_entropy(logits, targets):
    return -(logits.log_softmax(-1)[torch.arange(len(targets)), targets]).mean()
"""


def test_the_whole_notebook_has_a_limit_too():
    settings = RunSettings(timeout=60, total_timeout=6, seed=1)
    loop = {"dot_products": "while True: pass", "cross_entropy": HONEST_LOSS}
    made = verdicts("00", loop, settings=settings)
    assert {v.status for v in made.values()} == {"timeout"}


def test_what_is_settled_is_kept_and_what_builds_on_them_is_judged():
    known = {"rnn_step": Settled("missing", "not handed in")}
    answers = {**RIGHT, "rnn_step": None}
    made = verdicts("01", answers, settled=known)
    assert (made["rnn_step"].status, made["rnn_step"].message) == ("missing", "not handed in")
    assert made["run_rnn"].status == "ok"


def test_nothing_is_run_where_all_is_settled(monkeypatch):
    monkeypatch.setattr(execution, "_run", lambda *_: pytest.fail("a kernel was started"))
    known = {name: Settled("corrupt", "no notebook") for name in RIGHT}
    made = verdicts("01", dict.fromkeys(RIGHT), settled=known)
    assert {v.status for v in made.values()} == {"corrupt"}


def test_what_is_no_answer_is_told():
    made = verdicts(
        "00",
        {
            "dot_products": "def dot_product(a, b):\n    return a @ b.T",
            "cross_entropy": "cross_entropy = 3",
            "training_step": "def training_step(*args):\n    raise NotImplementedError('mine')",
        },
    )
    assert made["dot_products"].status == "unmatched"
    assert made["cross_entropy"].status == "unmatched"
    assert made["training_step"].status == "missing"


def test_the_seed_reproduces_a_verdict_and_another_draws_other_inputs():
    wrong = {"dot_products": "def dot_products(a, b):\n    return a @ b.T + 1"}
    messages = [
        verdicts("00", wrong, settings=RunSettings(seed=seed, timeout=30))["dot_products"].message
        for seed in (5, 5, 6)
    ]
    assert messages[0] == messages[1] != messages[2]


def test_an_error_of_the_grader_is_not_the_student_s(monkeypatch):
    def fail(place, _settings):
        (place / "log").write_text("INTERNALERROR> NameError: a check is broken")
        return int(pytest.ExitCode.INTERNAL_ERROR)

    monkeypatch.setattr(execution, "_run", fail)
    done = attempt(notebook("01", RIGHT), SETTINGS, execute)
    assert done.verdicts is None
    assert "GraderError: INTERNALERROR> NameError: a check is broken" in spoken(done.failure)


def test_no_sandbox_can_be_asked_for_by_name():
    settings = RunSettings(sandbox="none", timeout=30, seed=1)
    answer = {"dot_products": "def dot_products(a, b):\n    return a @ b.T"}
    assert verdicts("00", answer, settings=settings)["dot_products"].status == "ok"
    with pytest.raises(ValueError, match="none of"):
        execution.probe(RunSettings(sandbox="thick air"))


@pytest.mark.slow
def test_a_sandbox_that_does_not_start_is_no_fault_of_the_answers(tmp_path):
    """It starts where it is tried, and not when a notebook is run: on a busy machine."""
    (tmp_path / "bwrap").write_text(
        f'#!/bin/sh\ncase "$*" in *launch.py*) exit 1;; esac\nexec {shutil.which("bwrap")} "$@"\n'
    )
    (tmp_path / "bwrap").chmod(0o755)
    code = (
        "from tests.grading.test_execute import *\n"
        "if __name__ == '__main__':\n"
        "    try:\n        print(verdicts('01', RIGHT))\n"
        "    except Exception as error:\n        print(type(error).__name__, error)\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path.cwd()),
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
    }
    told = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert told.startswith("SandboxError")
    assert "bubblewrap did not start" in told


@pytest.mark.slow
def test_nothing_is_left_running_when_the_grader_is_killed():
    code = (
        "from tests.grading.test_execute import *\n"
        "if __name__ == '__main__':\n"
        "    verdicts('00', {'dot_products': 'import time; open(\"/tmp/marked\", \"w\"); "
        "time.sleep(987)'}, settings=RunSettings(timeout=900, total_timeout=900))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    grader = subprocess.Popen([sys.executable, "-c", code], env=environment)
    assert wait_until(lambda: len(kernels_below(grader.pid)) > 0)
    time.sleep(3)
    pids = kernels_below(grader.pid)
    grader.send_signal(signal.SIGKILL)
    grader.wait()
    assert wait_until(lambda: not any(map(runs_kernel, pids)))


def kernels_below(pid):
    """The processes below a process that run a kernel's launcher."""
    return [child for child in tree(pid).pids if runs_kernel(child)]


def runs_kernel(pid):
    """Whether a process is there that runs a kernel's launcher; one that is dead has no words."""
    try:
        return b"launch.py" in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def wait_until(true, seconds=300):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if true():
            return True
        time.sleep(0.1)
    return False


def test_verdicts_are_plain_json_whatever_was_raised():
    bad = "def dot_products(a, b):\n    raise ValueError('\\ud800 \\x00 <script>')"
    made = verdicts("00", {"dot_products": bad})["dot_products"]
    assert made.status == "error"
    json.dumps(made.detail).encode()
    made.message.encode()
