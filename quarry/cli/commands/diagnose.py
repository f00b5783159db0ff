"""`quarry diagnose`: which stage lost the evidence of every case that fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from quarry.cli.commands.evaluate import DocumentsOption, SetsArgument, chosen
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.evaluating import DEADLINE_S, Documents, opening
from quarry.cli.extracting import extracted
from quarry.cli.output import one_line, print_json, print_line
from quarry.cli.requests import request_of
from quarry.settings import Settings

if TYPE_CHECKING:
    from evals.datasets.questions import Case
    from evals.improving.diagnose import Diagnoses
    from evals.running.system import System


def diagnose(
    context: typer.Context,
    *,
    datasets: SetsArgument,
    documents: DocumentsOption = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--slice", metavar="NAME", help="Only the cases of this slice."),
    ] = None,
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Name the first stage that lost the evidence, for every case of a set that fails.

    Walks the way from the source to the answer, and tells losses of the embedding, the vector
    index, the filters and the ranking apart by exact search over what the asker may read. With
    --documents the sources are read again, to tell what was never written from what was not
    extracted.
    """
    settings = settings_of(context, config, or_defaults=True)
    from evals.datasets.questions import load_all

    cases = chosen(load_all(datasets), only or [])
    folders = [Documents.parse(each) for each in documents or []]
    with opening(settings, folders)() as system:
        found = asyncio.run(_diagnose(settings, cases, system, folders))
    if as_json:
        print_json(_json(found))
        return
    for line in _lines(found):
        print_line(line)


async def _diagnose(
    settings: Settings, cases: list[Case], system: System, folders: list[Documents]
) -> Diagnoses:
    from evals.improving.diagnose import Means, diagnose
    from evals.measuring.retrieval import Depths
    from evals.running.observe import Variant, request_body

    inside = system.inside
    assert inside is not None, "an index in this process has an inside"
    people = inside.people
    retrieval = settings.retrieval
    return await diagnose(
        cases,
        system,
        Means(
            depths=Depths(sent=retrieval.evidence_chunks, reranked=settings.reranker.depth),
            make_request=lambda case: request_of(
                settings, request_body(case, Variant()), people(case), deadline_s=DEADLINE_S
            ),
            candidates=max(retrieval.candidates, retrieval.top_k),
            extract=(lambda: extracted(settings, folders)) if folders else None,
        ),
    )


def _lines(found: Diagnoses) -> list[str]:
    lines = [f"{len(found.failed)} of {found.cases} cases failed."]
    lines += [f"  {count:>4}  {stage.value}" for stage, count in found.counts.items()]
    for each in found.failed:
        lines += ["", f"{each.case.id}: {each.stage.value} ({one_line('; '.join(each.reasons))})"]
        for loss in each.losses:
            where = f"  [{one_line(loss.record)}]" if loss.record else ""
            lines.append(f"  {loss.stage.value}: {loss.reason}{where}")
            lines.append(f"    “{one_line(loss.phrase)}”")
    return lines


def _json(found: Diagnoses) -> Mapping[str, Any]:
    return {
        "cases": found.cases,
        "failed": len(found.failed),
        "counts": {stage.value: count for stage, count in found.counts.items()},
        "diagnoses": [
            {
                "id": each.case.id,
                "stage": each.stage.value,
                "reasons": list(each.reasons),
                "losses": [
                    {
                        "phrase": loss.phrase,
                        "stage": loss.stage.value,
                        "reason": loss.reason,
                        "record": loss.record,
                    }
                    for loss in each.losses
                ],
            }
            for each in found.failed
        ],
    }
