"""Which known mistakes an answer makes: the one, or the two, that do what the answer does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, islice

from attn_course.checks.exercise import Answer, Case, Exercise, Mistake
from attn_course.checks.findings import Finding, outcomes_of, problem_of, same_outcome
from attn_course.checks.runner import Outcome


@dataclass(frozen=True)
class Named:
    """The mistakes that an answer makes, and whether they explain all that it does."""

    mistakes: tuple[Mistake, ...]
    everywhere: bool


def known_mistake(
    exercise: Exercise, findings: Sequence[Finding], wrong: Sequence[Finding]
) -> Named | None:
    """The mistake that does what the answer does, or two that do so together.

    One that does so on all probes is preferred, then two. Else the answer has a fault that nobody
    foresaw, alone or besides: then see `_likeliest`.
    """
    findings = [f for f in findings if not f.case.stage.remark]
    stage = wrong[0].case.stage
    with_value = any(f.outcome.failure is None for f in wrong if f.case.stage is stage)
    # RuntimeError alone is no fingerprint: without a wrong value the error's text must agree too
    text = not any(finding.outcome.failure is None for finding in wrong)
    on_stage = [finding for finding in findings if finding.case.stage is stage]
    elsewhere = [finding for finding in findings if finding.case.stage is not stage]
    candidates = []
    for mistake, version in ((m, v) for m in exercise.mistakes for v in exercise.versions(m)):
        # most mistakes differ on this stage already, and need not be run on the other probes
        if not all(one.agrees for one in _against(version, on_stage, text=text)):
            continue
        compared = list(_against(version, elsewhere, text=text))
        if all(one.agrees for one in compared):
            return Named((mistake,), True)
        candidates.append(_Candidate.of(exercise, mistake, compared))
    if with_value:
        pairs = _pairs(exercise, on_stage, [c.mistake for c in candidates])
        pair = _two_mistakes(exercise, pairs, [*on_stage, *elsewhere])
        if pair:
            return Named(pair, True)
    named = _likeliest(candidates) if with_value else None
    named = named or _named_by_error(exercise, wrong[0].outcome)
    return Named((named,), False) if named else None


def _two_mistakes(
    exercise: Exercise, pairs: Iterable[tuple[Mistake, Mistake]], findings: Sequence[Finding]
) -> tuple[Mistake, Mistake] | None:
    """The first two mistakes, each an edit, that together do what the answer does on all probes."""
    versions = ((pair, answer) for pair in pairs for answer in exercise.with_both(*pair))
    for pair, answer in islice(versions, TRIED_OF_CLASSES if exercise.wire == "class" else TRIED):
        outcomes = outcomes_of(answer, [finding.case for finding in findings])
        if all(probe.agrees for probe in _comparisons(outcomes, findings, text=False)):
            return pair
    return None


TRIED = 1500
"""How many versions with two mistakes an answer is held against: all pairs of some fifty-five."""

TRIED_OF_CLASSES = 200
"""The same where each version makes a module, which takes its time: a learner waits."""


def _pairs(
    exercise: Exercise, on_stage: Sequence[Finding], first: Sequence[Mistake]
) -> Iterable[tuple[Mistake, Mistake]]:
    """The pairs that can explain what the answer does.

    on_stage: what it does on the first bad stage.
    first: those that explain this stage alone. If there are any, one of the two is one of them:
        the other one shows elsewhere. Else it takes both, and each does harm there.
    """
    if first:
        unique = list({mistake.id: mistake for mistake in first}.values())
        return ((one, other) for one in unique for other in exercise.mistakes if other is not one)
    return combinations((m for m in exercise.mistakes if _does_harm(exercise, m, on_stage)), 2)


def _does_harm(exercise: Exercise, mistake: Mistake, findings: Sequence[Finding]) -> bool:
    """Whether a mistake is wrong on one of these probes, in one of its versions."""
    return any(
        not one.is_right(exercise)
        for version in exercise.versions(mistake)
        for one in _against(version, findings, text=False)
    )


def _named_by_error(exercise: Exercise, outcome: Outcome) -> Mistake | None:
    """The mistake of which an error's own words tell."""
    text = outcome.failure.text if outcome.failure else ""
    if not isinstance(text, str):
        return None
    return next((m for m in exercise.mistakes if m.error and m.error in text), None)


@dataclass(frozen=True)
class _Candidate:
    """A mistake that explains the first bad stage, and how it fares on the others.

    Attributes:
        traced: wherever it is wrong, the answer is wrong in the same way.
        denied: somewhere it is wrong and the answer right.
        explained: how many further bad stages it explains as well.
        agreeing: on how many probes it does what the answer does.
    """

    mistake: Mistake
    traced: bool
    denied: bool
    explained: int
    agreeing: int

    @staticmethod
    def of(exercise: Exercise, mistake: Mistake, compared: Sequence[_Compared]) -> _Candidate:
        bad = {one.stage for one in compared if one.finding.problem}
        differing = [one for one in compared if not one.agrees]
        right = [one.is_right(exercise) for one in differing]
        return _Candidate(
            mistake,
            traced=all(right),
            denied=any(
                not one.finding.problem and not is_right
                for one, is_right in zip(differing, right, strict=True)
            ),
            explained=len(bad - {one.stage for one in differing}),
            agreeing=len(compared) - len(differing),
        )


def _likeliest(candidates: Sequence[_Candidate]) -> Mistake | None:
    """The mistake that explains a part of what the answer does, if it can be no other one.

    A stage may fail in the same way for several reasons, and a name that is not true misleads
    more than none. So it must leave its whole trace, or explain more stages than any other, or
    be the only one that explains the first.
    """
    possible = [c for c in candidates if c.explained or not c.denied]
    for chosen in ([c for c in possible if c.traced], possible):
        most = max((c.explained for c in chosen), default=0)
        leading = [c for c in chosen if c.explained == most]
        if len({c.mistake.id for c in leading}) == 1:
            return max(leading, key=lambda c: c.agreeing).mistake
    return None


@dataclass(frozen=True)
class _Compared:
    """What a known mistake did on a probe, if it got so far, beside what the answer did there."""

    finding: Finding
    outcome: Outcome | None
    agrees: bool

    @property
    def stage(self) -> str:
        """The name of the probe's stage."""
        return self.finding.case.stage.name

    def is_right(self, exercise: Exercise) -> bool:
        """Whether the known mistake does no harm on this probe."""
        if self.outcome is None:
            return False
        case, expected, own = self.finding.case, self.finding.expected, self.finding.own
        return not problem_of(exercise, case, self.outcome, expected, own)


def _against(version: Answer, findings: Sequence[Finding], *, text: bool) -> Iterator[_Compared]:
    """Probe by probe, whether a known mistake does what the answer did."""
    outcomes = _known_outcomes(version, [finding.case for finding in findings])
    return _comparisons(outcomes, findings, text=text)


def _comparisons(
    outcomes: Iterator[Outcome], findings: Sequence[Finding], *, text: bool
) -> Iterator[_Compared]:
    """Each probe as it is asked for: most mistakes differ on the first one already."""
    for finding in findings:
        outcome = next(outcomes, None)
        agrees = outcome is not None and same_outcome(outcome, finding.outcome, finding.case.dtype)
        if agrees and text and outcome is not None:
            agrees = _same_words(outcome, finding.outcome)
        yield _Compared(finding, outcome, agrees)


def _known_outcomes(version: Answer, cases: Sequence[Case]) -> Iterator[Outcome]:
    """What a known wrong version does on each case, asked once for each."""
    for k, case in enumerate(cases):
        if version not in case.outcomes:
            asked = zip(cases[k:], outcomes_of(version, cases[k:]), strict=False)
            for later, outcome in asked:
                later.outcomes[version] = outcome
                yield outcome
            return
        yield case.outcomes[version]


def _same_words(known: Outcome, found: Outcome) -> bool:
    """Whether a known mistake and an answer that did the same raised the same text, if anything.

    A refusal by the answer itself is in words of its own: that it refuses the same is enough.
    """
    failure = found.failure
    if failure and failure.kind == "ValueError" and "raise " in failure.line:
        return True
    return (known.failure and known.failure.text) == (failure and failure.text)
