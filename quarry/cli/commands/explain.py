"""`quarry explain`: how an answer came about, and which stage lost what it should rest on."""

from __future__ import annotations

from typing import Annotated

import typer

from quarry.cli.commands.ask import (
    AsOfOption,
    AsOption,
    FilterOption,
    GroupsOption,
    ModeOption,
    QuestionArgument,
    TopOption,
    VersionsOption,
    print_reply,
    query_of,
    respond,
)
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.render_explain import explanation_lines
from quarry.records import Mode

ExpectOption = Annotated[
    list[str] | None,
    typer.Option(
        "--expect",
        metavar="PHRASE",
        help="Words of a document that the answer should rest on; names the first stage that lost "
        "them. May be given several times.",
    ),
]


def explain(
    context: typer.Context,
    *,
    question: QuestionArgument,
    expect: ExpectOption = None,
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
    """Show how an answer comes about: what each stage found, kept and left out, and why.

    The question is answered on the way. What this person may not read is not shown, and is not
    told apart from what does not exist.
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
    reply = respond(settings, "explain", {**query, "expect": expect or []})
    print_reply(reply, explanation_lines, as_json=as_json)
