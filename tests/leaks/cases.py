"""Generated corpora, people and questions, and what each person may see of a corpus.

Every document and every chunk bears a word of its own (`mark`). Questions are made of words that
all documents share, so that what is forbidden fits as well as what is not. What may be seen is
worked out here from the description of a corpus, and from nothing that Quarry says of it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from quarry.records import Mode, Status

TOPICS = "tent drive leave rate policy axis fault week store refund".split()
CODES = ("E-1001", "E-1002", "HR-014")
PAST, FUTURE = date(2020, 1, 1), date(2999, 1, 1)
TENANTS = {"": "default", "ruth": "default", "mei": "default", "nils": "north"}
"""Who asks, and of which tenant each is; the nameless one is everybody."""
GROUPS = ("staff", "hr")
ACLS = (
    *[("public",)] * 5,
    ("staff",),
    ("hr",),
    ("hr", "staff"),
    ("user:ruth",),
    ("hr", "user:mei", "user:nils"),
    (),
)


def mark(number: int) -> str:
    """A word that occurs nowhere else; letters only, so that it is no identifier."""
    return "zq" + "".join(chr(ord("a") + int(digit)) for digit in f"{number:05d}") + "qz"


GLOSSARY = Path(__file__).with_name("glossary.yaml")
GLOSSARY_MARKS = {"default": mark(0), "north": mark(1)}
"""The word of the glossary that only questions of this tenant may bring up."""


# -------------------------------------------------------------------------------------- corpora


@dataclass(frozen=True)
class Doc:
    """One document and what became of it.

    `fate`: it is `live`; it was `replaced` and rows of the old revision are left; it was `deleted`
    and its rows are left; it was `narrowed` by its row while the stores say that all may read it;
    an `attempt` has written rows and not committed; `overtaken`: it is live, and rows of an attempt
    lie beside it.
    """

    number: int
    fate: str
    tenant: str
    acl: tuple[str, ...]
    texts: tuple[str, ...]
    """Without their marks."""
    status: Status
    series: str
    version: int
    effective: date | None
    region: str

    @property
    def mark(self) -> str:
        return mark(self.number * 100)

    def chunk_marks(self, revision: str) -> list[str]:
        """Marks of the chunks of its `dead` or `served` revision."""
        start = self.number * 100 + (50 if revision == "dead" else 1)
        return [mark(start + place) for place in range(len(self.texts))]

    @property
    def served(self) -> bool:
        return self.fate not in ("deleted", "attempt")

    def readable(self, who: Who) -> bool:
        return self.served and self.tenant == who.tenant and not who.scopes.isdisjoint(self.acl)


@dataclass(frozen=True)
class Corpus:
    docs: tuple[Doc, ...]

    def readable(self, who: Who) -> list[Doc]:
        return [doc for doc in self.docs if doc.readable(who)]

    def shown(self, ask: Ask) -> list[Doc]:
        """What a search may give: readable, matching the filter, and of the version asked for."""
        readable = self.readable(ask.who)
        return [doc for doc in readable if _is_asked_for(doc, readable, ask)]


def _is_asked_for(doc: Doc, readable: list[Doc], ask: Ask) -> bool:
    if not ask.filter.matches(doc):
        return False
    if doc.status is not Status.CURRENT:
        return "status" in ask.filter.names
    if ask.all_versions or ask.filter.names & {"version", "effective"}:
        return True
    if doc.effective == FUTURE:
        return False
    if not doc.series:
        return True
    rivals = [
        (each.version, each.effective or date.min)
        for each in readable
        if each.series == doc.series and each.status is Status.CURRENT and each.effective != FUTURE
    ]
    return (doc.version, doc.effective or date.min) == max(rivals)


# ------------------------------------------------------------------------------------ questions


@dataclass(frozen=True)
class Who:
    user: str
    groups: tuple[str, ...]

    @property
    def tenant(self) -> str:
        return TENANTS[self.user]

    @property
    def scopes(self) -> set[str]:
        return {"public", *self.groups} | ({f"user:{self.user}"} if self.user else set())


@dataclass(frozen=True)
class Filter:
    text: str
    names: frozenset[str]
    matches: Callable[[Doc], bool]


FILTERS = (
    Filter("", frozenset(), lambda _: True),
    Filter("region = north", frozenset({"region"}), lambda doc: doc.region == "north"),
    Filter("not region = north", frozenset({"region"}), lambda doc: doc.region != "north"),
    Filter("series = S1", frozenset({"series"}), lambda doc: doc.series == "S1"),
    Filter(
        "version >= 2 and source = test",
        frozenset({"version", "source"}),
        lambda doc: bool(doc.series) and doc.version >= 2,
    ),
    Filter("status = draft", frozenset({"status"}), lambda doc: doc.status is Status.DRAFT),
    Filter(
        "region in (north, south) or series = S2",
        frozenset({"region", "series"}),
        lambda doc: doc.region in ("north", "south") or doc.series == "S2",
    ),
)

OUTAGES = (
    *[""] * 12,
    "dense",
    "embedder",
    "lexical",
    "reranker",
    "generator",
    "neighbours",
    "catalog",
    "everything",
)
"""What is down while a question is answered; mostly nothing."""

ENDPOINTS = ("search", "answer", "explain")


@dataclass(frozen=True)
class Ask:
    """One request; it is a case of the suite."""

    who: Who
    question: str
    filter: Filter
    mode: Mode
    top_k: int
    all_versions: bool
    rerank: bool
    endpoint: str
    outage: str
    expected: int
    """Number of the document whose mark an explanation is asked about."""
    said: tuple[str, ...] = ()
    """What was said before, by the person and the assistant in turn."""

    @property
    def conversation(self) -> list[dict[str, str]]:
        roles = ("user", "assistant")
        return [
            {"role": roles[turn % 2], "content": content} for turn, content in enumerate(self.said)
        ]

    def body(self) -> dict[str, Any]:
        """The request as the HTTP API takes it."""
        body: dict[str, Any] = {
            "question": self.question,
            "mode": self.mode.value,
            "top_k": self.top_k,
            "filter": self.filter.text,
            "all_versions": self.all_versions,
            "rerank": self.rerank,
            "as": self.who.user,
            "groups": list(self.who.groups),
            "conversation": self.conversation,
        }
        if self.endpoint == "explain":
            body["expect"] = [mark(self.expected * 100 + 1), "words that nobody wrote"]
        return body


# ----------------------------------------------------------------------------------- strategies

_text = st.lists(st.sampled_from(TOPICS + list(CODES)), min_size=2, max_size=6).map(" ".join)
_fate = st.sampled_from(
    ("live", "live", "live", "replaced", "deleted", "narrowed", "attempt", "overtaken")
)


def documents(number: int) -> st.SearchStrategy[Doc]:
    return st.builds(
        Doc,
        number=st.just(number),
        fate=_fate,
        tenant=st.sampled_from((*["default"] * 5, "north")),
        acl=st.sampled_from(ACLS),
        texts=st.lists(_text, min_size=1, max_size=3).map(tuple),
        status=st.sampled_from((*[Status.CURRENT] * 6, *Status)),
        series=st.sampled_from(("", "", "S1", "S2")),
        version=st.integers(1, 3),
        effective=st.sampled_from((None, None, None, PAST, PAST, FUTURE)),
        region=st.sampled_from(("north", "south", "west")),
    )


def corpora(*, least: int, most: int) -> st.SearchStrategy[Corpus]:
    return st.integers(least, most).flatmap(
        lambda size: st.tuples(*map(documents, range(1, size + 1))).map(Corpus)
    )


def asks(corpus: Corpus) -> st.SearchStrategy[Ask]:
    words = st.lists(st.sampled_from(TOPICS), min_size=1, max_size=4)
    code = st.sampled_from(("", "", *CODES))
    return st.builds(
        Ask,
        who=st.builds(
            Who,
            user=st.sampled_from(tuple(TENANTS)),
            groups=st.sets(st.sampled_from(GROUPS)).map(lambda found: tuple(sorted(found))),
        ),
        question=st.builds(lambda some, one: " ".join([*some, one]).strip(), words, code),
        filter=st.sampled_from((*[FILTERS[0]] * 7, *FILTERS)),
        mode=st.sampled_from(Mode),
        top_k=st.sampled_from((1, 3, 10, 50)),
        all_versions=st.booleans(),
        rerank=st.booleans(),
        endpoint=st.sampled_from(ENDPOINTS),
        outage=st.sampled_from(OUTAGES),
        expected=st.sampled_from([doc.number for doc in corpus.docs]),
        said=st.lists(_text, max_size=3).map(tuple),
    )
