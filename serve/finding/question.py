"""Takes a question in: the same cleaning as documents, its length, its codes, its scope."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from quarry.access import Filter
from quarry.access.check import search_filter
from quarry.access.language import parse_filter
from quarry.errors import QuestionError
from quarry.records import Mode, Principal, SearchRequest, StageRecord
from quarry.settings_retrieval import RetrievalSettings
from quarry.text import clean, identifiers
from serve.stage import Stopwatch

NOT_READ = "not_read"
"""Of a conversation: `retrieval.rewrite.follow_up` is off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A request as the stages see it."""

    question: str
    principal: Principal
    mode: Mode
    top_k: int
    candidates: int
    """Rows asked of each leg at first."""
    rrf_k: int
    all_versions: bool
    filter: Filter
    """What the caller asked for; the catalog check holds every candidate to it exactly."""
    where: Filter
    """What the stores are asked with: the scope and the caller's filter."""
    today: date
    """The day that decides which versions are in effect (UTC): that of `as_of`, if it is given."""
    as_of: datetime | None = None
    """What was served then is searched; None: what is served now."""
    lane: frozenset[str]
    """Identifiers of the question; passages that hold one stand first."""
    wordings: tuple[str, ...] = ()
    """Other ways to ask the question, searched as well."""
    guesses: tuple[str, ...] = ()
    """Made-up answers, whose vectors are searched together with the question's."""
    expansions: tuple[str, ...] = ()
    """Other words for terms of the question, for the lexical leg."""

    @property
    def codes(self) -> frozenset[str]:
        """Identifiers of the question, whether they lead or not."""
        return self.lane.union(identifiers(self.question))


def ask(request: SearchRequest, settings: RetrievalSettings) -> tuple[Asked, StageRecord]:
    """The request, checked.

    Raises QuestionError for an empty or too long question, FilterError for a bad filter, UsageError
    for a principal whose names are no names.
    """
    watch = Stopwatch("question")
    question = clean(request.question)
    if not question:
        raise QuestionError("The question is empty; write what you want to know.")
    if len(question) > settings.max_question_chars:
        raise QuestionError(
            f"The question is longer than {settings.max_question_chars} characters; shorten it."
        )
    wanted = parse_filter(request.filter)
    today = (request.as_of or datetime.now(UTC)).astimezone(UTC).date()
    where = search_filter(request.principal, wanted, today=today, all_versions=request.all_versions)
    codes = identifiers(question)
    asked = Asked(
        question=question,
        principal=request.principal,
        mode=request.mode,
        top_k=request.top_k,
        candidates=settings.candidates,
        rrf_k=settings.rrf_k,
        all_versions=request.all_versions,
        filter=wanted,
        where=where,
        today=today,
        as_of=request.as_of,
        # The dense mode is for looking at the vectors alone.
        lane=frozenset() if request.mode is Mode.DENSE else frozenset(codes),
    )
    unread = bool(request.conversation) and not settings.rewrite.follow_up
    detail = {"conversation": NOT_READ} if unread else {}
    return asked, watch.done(1, mode=request.mode.value, identifiers=codes, **detail)
