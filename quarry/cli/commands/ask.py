"""`quarry search` and `quarry ask`: through a running server if there is one, else in process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

import typer

from quarry import past
from quarry.cli.catalog import need_index
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.output import one_line, print_json, print_line, print_note
from quarry.cli.render import answer_lines, search_lines
from quarry.cli.requests import Askers, request_of, users_of
from quarry.cli.server import RunningServer
from quarry.records import Mode
from quarry.settings import Settings

Kind = Literal["search", "answer", "explain"]
_WORTH_A_WORD_S = 2.0

QuestionArgument = Annotated[
    str, typer.Argument(metavar="QUESTION", help="In plain words; quote it for the shell.")
]
AsOption = Annotated[
    str,
    typer.Option(
        "--as",
        metavar="USER",
        help="Ask as this person, with the groups of access.users_file; else as nobody, who "
        "sees public documents only.",
    ),
]
GroupsOption = Annotated[
    str | None,
    typer.Option("--groups", metavar="A,B", help="With these groups in place of the person's."),
]
ModeOption = Annotated[
    Mode, typer.Option("--mode", help="Search by vectors, by words, or by both.")
]
TopOption = Annotated[
    int | None,
    typer.Option(
        "--top-k",
        min=1,
        max=100,
        metavar="N",
        help="Results, or sources of an answer, at most; else retrieval.top_k.",
    ),
]
FilterOption = Annotated[
    str,
    typer.Option(
        "--filter",
        metavar="EXPR",
        help="Only documents that match, such as: region = canada and version >= 2.",
    ),
]
VersionsOption = Annotated[
    bool, typer.Option("--all-versions", help="Superseded versions of a series as well.")
]
AsOfOption = Annotated[
    str | None,
    typer.Option(
        "--as-of",
        metavar="TIME",
        help="What was served then, within stores.retention_days (unset: not at all): 2026-01-31 "
        "(the end of that day, UTC) or 2026-01-31T14:30Z.",
    ),
]


def search(
    context: typer.Context,
    *,
    question: QuestionArgument,
    user: AsOption = "",
    groups: GroupsOption = None,
    mode: ModeOption = Mode.HYBRID,
    top_k: TopOption = None,
    filter: FilterOption = "",
    all_versions: VersionsOption = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Find the passages that fit a question.

    A server of the same data folder answers if one runs; otherwise this process does.
    """
    settings = settings_of(context, config)
    query = query_of(
        question=question,
        user=user,
        groups=groups,
        mode=mode,
        top_k=top_k,
        filter=filter,
        all_versions=all_versions,
        as_of=as_of,
    )
    reply = respond(settings, "search", query)
    print_reply(reply, search_lines, as_json=as_json)


def ask(
    context: typer.Context,
    *,
    question: QuestionArgument,
    user: AsOption = "",
    groups: GroupsOption = None,
    mode: ModeOption = Mode.HYBRID,
    top_k: TopOption = None,
    filter: FilterOption = "",
    all_versions: VersionsOption = False,
    as_of: AsOfOption = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Answer a question with cited sources, or refuse.

    A refusal means that nothing this person may read supports an answer. It is no error: the exit
    code is 0, and the status in the JSON is `refused`.
    """
    settings = settings_of(context, config)
    query = query_of(
        question=question,
        user=user,
        groups=groups,
        mode=mode,
        top_k=top_k,
        filter=filter,
        all_versions=all_versions,
        as_of=as_of,
    )
    reply = respond(settings, "answer", query)
    print_reply(reply, answer_lines, as_json=as_json)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """The stable JSON of a search, an answer or an explanation."""

    body: dict[str, Any]
    seconds: float
    loading_s: float = 0.0
    """What opening stores and models took before, where this process had to."""


def respond(settings: Settings, kind: Kind, query: dict[str, Any]) -> Reply:
    """From a running server of the data folder if there is one, else from this process."""
    request = request_of(settings, query, Askers(settings).of(query))
    from serve.finding.question import ask as check

    check(request, settings.retrieval)  # before a model is loaded or a server is asked
    if request.as_of:
        kept_for = timedelta(days=settings.stores.retention_days)
        past.check_time(request.as_of, retention=kept_for, now=datetime.now(UTC))
    began = time.monotonic()
    server = RunningServer.find(settings.data_dir)
    _note_unknown(settings, query, served=server is not None)
    if server is not None:
        if others := server.other_settings(settings):
            print_note(
                f"The server at {server.url} was started with another {', '.join(others)}; restart "
                "quarry serve for these settings to hold."
            )
        body = server.post(f"/v1/{kind}", query, deadline_s=settings.serve.deadline_s)
        return Reply(body=body, seconds=time.monotonic() - began)
    need_index(settings)
    from serve.engine import open_engine
    from serve.http.explanations import explanation_json
    from serve.http.schemas import answer_json, search_json

    with open_engine(settings) as engine:
        ready = time.monotonic()
        if kind == "search":
            body = search_json(asyncio.run(engine.search(request)))
        elif kind == "explain":
            expect = [(phrase,) for phrase in query["expect"]]
            body = explanation_json(asyncio.run(engine.explain(request, expect)))
        else:
            body = answer_json(asyncio.run(engine.answer_whole(request)))
        return Reply(body=body, seconds=time.monotonic() - ready, loading_s=ready - began)


def print_reply(
    reply: Reply,
    lines: Callable[[dict[str, Any], float], Iterable[str]],
    *,
    as_json: bool,
) -> None:
    if as_json:
        print_json(reply.body)
        return
    for line in lines(reply.body, reply.seconds):
        print_line(line)
    if reply.loading_s > _WORTH_A_WORD_S:
        print_note(
            f"Loading the models took {reply.loading_s:.0f} s before that; "
            "while quarry serve runs, they stay loaded."
        )


def _note_unknown(settings: Settings, query: dict[str, Any], *, served: bool) -> None:
    """A name that is mistyped finds what is public, as if there were nothing else."""
    user, path = query.get("as"), settings.access.users_file
    if not user or "groups" in query or user in users_of(settings).principals:
        return
    name = one_line(user)
    if served:
        where = "access.users_file is not set here" if path is None else f"{name} is not in {path}"
        print_note(f"{one_line(where)}; the server's own file of users decides who {name} is.")
        return
    where = f"in {one_line(str(path))}" if path else "known here: access.users_file is not set"
    print_note(f"{name} is not {where}; who is not known has no groups.")


def query_of(
    *,
    question: str,
    user: str,
    groups: str | None,
    mode: Mode,
    top_k: int | None,
    filter: str,
    all_versions: bool,
    as_of: str | None,
) -> dict[str, Any]:
    """The body of the HTTP API; what is not given is left to the server's settings."""
    query: dict[str, Any] = {
        "question": question,
        "mode": mode.value,
        "filter": filter,
        "all_versions": all_versions,
    }
    if user:
        query["as"] = user
    if groups is not None:
        query["groups"] = [group.strip() for group in groups.split(",") if group.strip()]
    if top_k is not None:
        query["top_k"] = top_k
    if as_of is not None:
        query["as_of"] = as_of
    return query
