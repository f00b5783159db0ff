"""`quarry calibrate`: what the reranker's scores are worth, learnt from labelled questions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from quarry.cli.catalog import need_index
from quarry.cli.context import ConfigOption, JsonOption, settings_of
from quarry.cli.evaluating import asking, changed
from quarry.cli.output import print_json, print_line, print_table
from quarry.cli.requests import Askers
from quarry.errors import UsageError
from quarry.settings import Settings
from quarry.settings_retrieval import SelectSettings

if TYPE_CHECKING:
    from evals.datasets.questions import Case
    from evals.improving.calibrate import Curve, Scored
    from quarry.calibration import Calibration


def calibrate(
    context: typer.Context,
    *,
    questions: Annotated[
        Path, typer.Argument(metavar="QUESTIONS", help="A question set with evidence phrases.")
    ],
    out: Annotated[
        Path, typer.Option("--out", metavar="FILE", help="Where the calibration is written.")
    ] = Path("calibration.json"),
    as_json: JsonOption = False,
    config: ConfigOption = None,
) -> None:
    """Learn from labelled questions how probable evidence is at a score of the reranker.

    Writes the file that retrieval.select.threshold needs, and shows what thresholds would keep.
    Held-out questions are not used.
    """
    settings = settings_of(context, config)
    from evals.datasets.questions import load_questions
    from evals.improving.calibrate import cuts, fit, teaching

    if settings.reranker.kind == "none":
        raise UsageError("There is no reranker to calibrate; set reranker.kind.")
    cases = teaching(load_questions(questions))
    scored = _collected(settings, cases)
    curve = fit(scored)
    calibration = _calibration(settings, cases, scored, curve)
    calibration.save(out)
    kept = [asdict(cut) for cut in cuts(scored, curve)]
    if as_json:
        print_json(
            {
                "file": str(out),
                **calibration.model_dump(mode="json", exclude={"seen"}),
                "thresholds": kept,
            }
        )
        return
    print_table(("threshold", "evidence kept", "other passages kept"), map(_row, kept))
    print_line(
        f"{out} holds the calibration; set retrieval.select.calibration_file to it and "
        "retrieval.select.threshold to one of these."
    )


def _calibration(
    settings: Settings, cases: Sequence[Case], scored: Sequence[Scored], curve: Curve
) -> Calibration:
    from evals.improving.seen import fingerprints
    from quarry.calibration import Calibration, reranker_name

    evidence = sum(each.evidence for each in scored)
    return Calibration(
        reranker=reranker_name(settings),
        slope=curve.slope,
        intercept=curve.intercept,
        questions=len(cases),
        evidence=evidence,
        others=len(scored) - evidence,
        made_at=datetime.now(UTC),
        seen=fingerprints(cases),
    )


def _row(cut: Mapping[str, float]) -> Sequence[str]:
    kept = (f"{cut[name]:.1%}" for name in ("evidence_kept", "others_kept"))
    return (str(cut["threshold"]), *kept)


def _collected(settings: Settings, cases: Sequence[Case]) -> list[Scored]:
    from evals.improving.calibrate import collect
    from serve.engine import open_engine

    need_index(settings)
    plain = changed(settings, {"select": SelectSettings()})
    with open_engine(plain) as engine:
        return asyncio.run(collect(cases, asking(engine, plain, Askers(plain))))
