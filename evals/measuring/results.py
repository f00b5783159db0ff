"""What a whole run came to: results by case, figures over all of them and over every slice."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, quantiles

from evals.datasets.questions import Case
from evals.measuring.judgements import judges_answers
from evals.measuring.scoring import OUTCOMES


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One case over all its repeats: figures are means, and it passed if it passed each time."""

    case: Case
    passed: bool
    flaky: bool = False
    """Whether repeats ended differently."""
    outdated: bool = False
    """No live document holds its evidence: it is shown, and counts in no figure but leaks."""
    reasons: tuple[str, ...] = ()
    leaks: tuple[str, ...] = ()
    error: str = ""
    empty: bool = False
    degraded: tuple[str, ...] = ()
    status: str = ""
    answer: str = ""
    found: tuple[int | None, ...] = ()
    """Rank of each piece of evidence or relevant document in the reranked list."""
    measures: Mapping[str, float] = field(default_factory=dict)
    search_ms: float = 0.0
    answer_ms: float = 0.0
    prompt_tokens: float = 0.0
    completion_tokens: float = 0.0

    @property
    def asked(self) -> bool:
        """Whether an answer was asked for, be it that none came."""
        return bool(self.status) or any(name in self.measures for name in OUTCOMES)

    @property
    def slices(self) -> tuple[str, ...]:
        """Its own slices, and those that follow from what it is."""
        case = self.case
        half = "half: held out" if case.held_out else "half: tuning"
        filtered = ("filtered",) if case.filter else ()
        return tuple(dict.fromkeys((f"kind: {case.kind.value}", half, *filtered, *case.slices)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """Counts say how many cases the means are over; failed and empty ones are in them as 0."""

    cases: int
    judged: int
    unjudged: int
    """Answerable cases that do not say what a search should find; in no retrieval figure."""
    unjudged_answers: int
    """Answerable cases that were asked for an answer and do not say what it must hold; in neither
    the pass rate nor correctness."""
    outdated: int
    failed: int
    empty: int
    degraded: int
    flaky: int
    leaks: int
    """Over all cases: what is outdated in a case does not make a leak of it harmless."""
    measures: Mapping[str, float]


def figures(results: Iterable[CaseResult]) -> Figures:
    everything = list(results)
    counted = [result for result in everything if not result.outdated]
    answerable = [result for result in counted if result.case.status == "answered"]
    return Figures(
        cases=len(everything),
        judged=sum(result.case.judged for result in answerable),
        unjudged=sum(not result.case.judged for result in answerable),
        unjudged_answers=sum(r.asked and not judges_answers(r.case) for r in counted),
        outdated=len(everything) - len(counted),
        failed=sum(bool(result.error) for result in counted),
        empty=sum(result.empty for result in counted),
        degraded=sum(bool(result.degraded) for result in counted),
        flaky=sum(result.flaky for result in counted),
        leaks=sum(len(result.leaks) for result in everything),
        measures=_pass_rate(counted) | _means(counted) | _costs(counted),
    )


def by_slice(results: Sequence[CaseResult]) -> dict[str, Figures]:
    """Figures of every slice, in the order of their names."""
    slices: dict[str, list[CaseResult]] = defaultdict(list)
    for result in results:
        for name in result.slices:
            slices[name].append(result)
    return {name: figures(members) for name, members in sorted(slices.items())}


def _pass_rate(counted: Sequence[CaseResult]) -> dict[str, float]:
    """Of the cases that say what a right answer is; none if only search was measured."""
    passed = [result.passed for result in counted if result.asked and judges_answers(result.case)]
    return {"pass_rate": fmean(passed)} if passed else {}


def _means(counted: Sequence[CaseResult]) -> dict[str, float]:
    columns: dict[str, list[float]] = defaultdict(list)
    for result in counted:
        for name, value in result.measures.items():
            columns[name].append(value)
    return {name: fmean(values) for name, values in columns.items()}


def _costs(counted: Sequence[CaseResult]) -> dict[str, float]:
    well = [result for result in counted if not result.error]
    if not well:
        return {}
    costs = {
        "prompt_tokens": fmean(result.prompt_tokens for result in well),
        "completion_tokens": fmean(result.completion_tokens for result in well),
        **_times("search", [result.search_ms for result in well]),
    }
    answered = [result.answer_ms for result in well if result.answer_ms]
    return costs | _times("answer", answered)


def _times(what: str, ms: Sequence[float]) -> dict[str, float]:
    if not ms:
        return {}
    steps = quantiles(ms, n=20, method="inclusive") if len(ms) > 1 else [ms[0]] * 19
    return {f"{what}_ms_p50": steps[9], f"{what}_ms_p95": steps[18]}
