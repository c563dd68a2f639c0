"""The verdict on one exercise, made outside: inputs drawn here, values compared here.

Of the student's process only values come back, by way of `peer`. They are held against what the
reference gives for inputs that this run alone has drawn.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from functools import partial
from random import Random
from time import monotonic
from typing import Any

from attn_course.checks import get
from attn_course.checks.exercise import Case, Exercise, call_stage
from attn_course.checks.judging import judge
from attn_course.checks.report import Example, Report
from attn_course.checks.ruled_out import called
from attn_course.checks.runner import TIME_LIMIT, Outcome, copy_of, run
from attn_course.grading.judging import forbidden
from attn_course.grading.remote.peer import Peer
from attn_course.sentences import Spoken, constant, joined, say

ENDED = "The answer was ended: {why}."

ASKED_AGAIN = 4
"""How often the plainest questions are asked again that can be answered by yes or no."""

GUESSING = "Asked again on other inputs, it misjudges the plainest cases: nothing counts as passed."


@dataclass(frozen=True)
class Assessment:
    """What was found out about one answer.

    Attributes:
        status: one of `verdict.STATUSES`.
        cause: one cause, in words that its author can act on.
        points: what it earned.
        example: the probe that shows it.
        stages: name of each stage, and whether it passed.
        line: of a forbidden call, where it is known.
    """

    status: str
    cause: Spoken = ""
    points: float = 0.0
    mistake: str | None = None
    example: Example | None = None
    stages: tuple[tuple[str, bool], ...] = ()
    observations: tuple[Spoken, ...] = ()
    line: str = ""

    @property
    def problem(self) -> Spoken:
        """What is wrong on the probe, without the inputs, which grading has drawn."""
        if self.example is None:
            return ""
        words = "On inputs drawn for grading: {problem}{ending}"
        if not self.example.inputs:
            words = "{problem}{ending}"
        problem = self.example.problem
        return say(words, problem=constant(problem.told), ending="" if problem.asks else ".")


def seed_for(run_seed: int, exercise: str, code: str) -> int:
    """The seed of one exercise's inputs in one run, for a student who has written `code`.

    An answer that was changed meets other inputs, though the run's seed is the same: what the
    feedback on the first told is of no use to the second.
    """
    digest = hashlib.sha256(json.dumps([run_seed, exercise, code]).encode()).digest()
    return int.from_bytes(digest[:6], "big")


def examine_remotely(
    exercise: Exercise, peer: Peer, seed: int, seconds: float
) -> tuple[Report, list[Outcome]]:
    """The report on the answer at the other end of the line, and what it did."""
    cases = exercise.cases(seed)
    outcomes = observe_remotely(exercise, peer, cases, seconds)
    return judge(exercise, cases, outcomes), outcomes


def observe_remotely(
    exercise: Exercise, peer: Peer, cases: list[Case], seconds: float
) -> list[Outcome]:
    """Call the answer on each case, and on the first one again: `checks.judging.observe` afar.

    The stage's own code runs here. Each probe starts as if none had been before it. A call has a
    quarter of the time, and no less than `check` gives it: a machine that grades is a busy one.
    """
    end = monotonic() + seconds
    outcomes: list[Outcome] = []
    answer = partial(_call, peer, f"answer:{exercise.name}")
    for case in [*cases, *cases[:1]]:
        args = copy_of(case.args)
        limit = max(0.1, min(max(TIME_LIMIT, seconds / 4), end - monotonic()))
        peer.forget()
        outcome = run(lambda a=args, s=case.stage: call_stage(s, answer, a), args, limit)
        outcomes.append(outcome)
        failure = outcome.failure
        if failure and (failure.timed_out or failure.unwritten or failure.kind == "KernelGone"):
            break
    return outcomes


def _call(peer: Peer, key: str, *args: Any, **kwargs: Any) -> Any:
    return peer.call(key, "", args, kwargs)


def assess(
    exercise_name: str, max_points: float, peer: Peer, seed: int, seconds: float
) -> Assessment:
    """Judge an answer that is there: its status, its points, what to tell its author."""
    exercise = get(exercise_name)
    report, outcomes = examine_remotely(exercise, peer, seed, seconds)
    last = outcomes[-1].failure
    if last and last.kind == "KernelGone":
        return Assessment("killed", say(ENDED, why=last.text), stages=report.stages)
    ready_made = called(exercise, peer.used)
    if ready_made:
        cause = forbidden.told(exercise, ready_made)
        return Assessment("forbidden", cause, stages=report.stages)
    points = credit(report, max_points)
    status = _status(report, outcomes)
    if points and not report.passed and is_guessing(exercise, peer, seed, outcomes, seconds):
        cause = joined((GUESSING, report.cause), "\n")
        return Assessment(status, cause, example=report.example, stages=report.stages)
    return Assessment(
        status,
        report.cause,
        points,
        report.mistake,
        report.example,
        report.stages,
        report.observations,
    )


def is_guessing(
    exercise: Exercise, peer: Peer, seed: int, outcomes: list[Outcome], seconds: float
) -> bool:
    """Whether answers of yes or no are wrong when the plainest questions are asked once more.

    They are on other inputs, and in random order: two such answers are right by chance one time
    in four, and always for who counts the calls, or recognises what came before.
    """
    plainest = exercise.cases(seed)[0].stage
    if not isinstance(outcomes[0].value, bool):
        return False
    drawn = [exercise.cases(seed + k) for k in range(1, ASKED_AGAIN + 1)]
    cases = [case for draw in drawn for case in draw if case.stage is plainest]
    Random(seed).shuffle(cases)
    right = [call_stage(plainest, exercise.reference, copy_of(case.args)) for case in cases]
    answered = observe_remotely(exercise, peer, cases, seconds)
    return any(one.value != wanted for one, wanted in zip(answered, right, strict=False))


def _status(report: Report, outcomes: list[Outcome]) -> str:
    if report.passed:
        return "ok"
    failures = [outcome.failure for outcome in outcomes]
    if failures[-1] and failures[-1].timed_out:
        return "timeout"
    if failures[0] and failures[0].unwritten:
        return "missing"
    return "error" if all(failures) and report.mistake is None else "wrong"


def credit(report: Report, max_points: float) -> float:
    """Points by the share of the stages that it passed.

    The first stage is the plainest question. Who does not pass that has done nothing that the
    others could show, though a constant or an error may be what one of them expects.
    """
    if report.passed:
        return float(max_points)
    if not report.stages or not report.stages[0][1]:
        return 0.0
    share = sum(passed for _, passed in report.stages) / len(report.stages)
    # never all of them: something is wrong
    return min(round(max_points * share, 2), round(max_points * (1 - 1 / 20), 2))
