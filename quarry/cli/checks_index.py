"""Whether the index fits the settings, and whether the files that they name can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from quarry.cli.catalog import live_generation
from quarry.cli.check import Check, Verdict, checked
from quarry.errors import QuarryError
from quarry.settings import Settings


def index_check(settings: Settings) -> Check:
    """What the live index was built with, as far as that can be told without loading a model."""
    from quarry.generations import certain_differences, way_back

    try:
        live = live_generation(settings)
        if live is None:
            return Check(
                group="index",
                name="live",
                verdict=Verdict.NOTE,
                detail="nothing ingested yet",
                fix="quarry ingest FOLDER",
            )
        changes = certain_differences(live, settings)
    except QuarryError as error:
        return checked("index", "live", False, str(error), "mend that, and run quarry doctor again")
    if changes:
        detail = f"{live.name} was built with another {', '.join(changes)}"
        return checked("index", "live", False, detail, way_back(settings))
    return checked("index", "live", True, f"{live.name}, built as these settings say", "")


def file_checks(settings: Settings) -> Iterator[Check]:
    """Every file that the settings name, save that of users."""
    from quarry.calibration import load_calibration
    from quarry.fusion import fusion_of
    from quarry.glossary import glossary_of

    retrieval, vllm = settings.retrieval, settings.generator.vllm
    if path := retrieval.fusion_file:
        fix = f"correct retrieval.fusion_file, or: quarry tune fusion QUESTIONS --output {path}"
        yield _file("fusion_file", path, lambda: fusion_of(settings), fix)
    if path := retrieval.select.calibration_file:
        fix = (
            "correct retrieval.select.calibration_file, "
            f"or: quarry calibrate QUESTIONS --out {path}"
        )
        yield _file("calibration_file", path, lambda: load_calibration(settings), fix)
    if path := retrieval.rewrite.glossary_file:
        fix = "correct retrieval.rewrite.glossary_file"
        yield _file("glossary_file", path, lambda: glossary_of(settings), fix)
    if settings.generator.kind == "vllm" and vllm.lora:
        there = Path(vllm.lora).expanduser().is_dir()
        detail = vllm.lora if there else f"there is no folder {vllm.lora}"
        yield checked("files", "lora", there, detail, "correct generator.vllm.lora")


def _file(name: str, path: Path, load: Callable[[], object], fix: str) -> Check:
    try:
        load()
    except QuarryError as error:
        return checked("files", name, False, str(error), fix)
    there = path.is_file()  # nothing reads a calibration without a threshold
    return checked("files", name, there, str(path) if there else f"there is no file {path}", fix)
