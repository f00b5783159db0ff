"""Evaluates every example against its gate: make eval-examples, or python examples/evaluate.py.

Everything it writes is in `.evals` of the checkout; the reports are in `.evals/reports`. Three run
at once. A second run only searches. With names, only those examples are evaluated; `planted` is one
only by name. The exit code is 4 if a gate does not let its example through.
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quarry.cli.main import run
from quarry.cli.output import print_line

EXAMPLES = Path(__file__).resolve().parent
REPO = EXAMPLES.parent
EVALS = REPO / ".evals"
REPORTS = EVALS / "reports"
NEIGHBOUR = REPO.parent / "shared" / "ir" / "cranfield" / "corpus.jsonl"
"""An unrelated collection for the noise example; any corpus.jsonl of a BEIR folder will do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    name: str
    code: int
    seconds: float


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Evaluate the examples against their gates.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(STEPS)}")
    given = dict.fromkeys(parser.parse_args(arguments).names)
    for name in given.keys() - STEPS.keys():
        parser.error(f"there is no example {name}; name some of {', '.join(STEPS)}")
    names = [name for name in STEPS if name in given or (not given and name not in ON_DEMAND)]
    REPORTS.mkdir(parents=True, exist_ok=True)
    if len(names) == 1:
        return STEPS[names[0]]()
    running: dict[str, Future[Outcome]] = {}
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for name in names:
            needed = [running[each] for each in NEEDS.get(name, ()) if each in running]
            running[name] = pool.submit(in_a_process, name, needed)
    outcomes = [each.result() for each in running.values()]
    print_line()
    for each in outcomes:
        told = {0: "ok", 4: "GATE FAILED"}.get(each.code, f"exit {each.code}")
        print_line(f"{each.name:<20} {each.seconds:>6.0f} s  {told}")
    return max(each.code for each in outcomes)


def in_a_process(name: str, needed: Sequence[Future[Outcome]]) -> Outcome:
    """Evaluates one when what it needs is there, and prints what it said when it is done."""
    for each in needed:
        each.result()
    print_line(f"=== {name} begins")
    sys.stdout.flush()
    began = time.monotonic()
    done = subprocess.run(  # noqa: S603
        [sys.executable, __file__, name],
        env={**os.environ, "OMP_NUM_THREADS": str(max(1, (os.cpu_count() or 1) // AT_ONCE))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    print_line(f"\n=== {name}\n{done.stdout}")
    sys.stdout.flush()
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode  # as a shell has it
    return Outcome(name=name, code=code, seconds=time.monotonic() - began)


def shop() -> int:
    return evaluate("outdoor-shop", ["questions.jsonl"])


def handbook() -> int:
    return evaluate("robotics-handbook", ["questions.jsonl", "fault_codes.jsonl"])


def planted() -> int:
    """The shop's questions with pages among its own that want to be obeyed."""
    folder = EXAMPLES / "outdoor-shop"
    command = ["eval", "inject", str(folder / "questions.jsonl")]
    command += ["--config", str(folder / "quarry.yaml")]
    return run([*command, "--documents", f"shop={folder / 'documents'}"])


def orders() -> int:
    return evaluate("orders", ["questions.jsonl"])


def paired() -> int:
    """By words alone and by both legs, and what either makes of other words than the page's."""
    folder = generated("paired")
    code = quarry(
        "paired-handbook",
        [folder / "questions.jsonl"],
        [f"paired={folder / 'documents'}"],
        "--mode",
        "lexical",
        "--mode",
        "hybrid",
    )
    report = json.loads((REPORTS / "paired-handbook.json").read_text(encoding="utf-8"))
    for line in gaps(report):
        print_line(line)
    return code


def generated(name: str) -> Path:
    """The paired handbook, in a folder of its own."""
    folder = EVALS / name
    runpy.run_path(str(EXAMPLES / "paired-handbook" / "generate.py"))["generate"](folder, 7)
    return folder


def gaps(report: dict[str, Any]) -> list[str]:
    """What the same questions lose when they share no word with the page, for each run."""
    lines = ["evidence among the passages that are sent:"]
    for each in report["runs"]:
        name = f"R@{each['depths']['sent']}"
        same, other, held_out = (
            each["slices"][slice_name]["measures"][name]
            for slice_name in ("same-words", "other-words", "half: held out")
        )
        lines.append(
            f"  {each['label']}: {same:.2f} in the page's words, {other:.2f} in others "
            f"(held out {held_out:.2f}); the gap is {same - other:.2f}"
        )
    return lines


def crowd() -> int:
    """The handbook's questions with four other corpora in the index, and no filter."""
    return asked_in_noise("crowd", plain_cases(), gated=False)


def noise() -> int:
    """The same questions in the same index, filtered to their source: as good as alone."""
    named = [
        case | {"filter": within("handbook", case.get("filter", ""))} for case in plain_cases()
    ]
    code = asked_in_noise("noise", named, "--baseline", str(REPORTS / "robotics-handbook.json"))
    for line in passes(["robotics-handbook", "noise", "crowd"]):
        print_line(line)
    return code


def plain_cases() -> list[dict[str, Any]]:
    cases = (EXAMPLES / "robotics-handbook" / "questions.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in cases.splitlines()]


def asked_in_noise(
    name: str, cases: Sequence[dict[str, Any]], *more: str, gated: bool = True
) -> int:
    if not NEIGHBOUR.is_file():
        print_line(f"left out: there is no {os.path.relpath(NEIGHBOUR)}")
        return 1 if os.environ.get("QUARRY_CI") == "1" else 0
    folder = EVALS / "noise"
    folder.mkdir(exist_ok=True)
    asked = folder / f"{name}.jsonl"
    lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in cases]
    asked.write_text("".join(lines), encoding="utf-8")
    documents = [
        f"handbook={EXAMPLES / 'robotics-handbook' / 'documents'}",
        f"shop={EXAMPLES / 'outdoor-shop' / 'documents'}",
        f"orders={EXAMPLES / 'orders' / 'documents'}",
        f"paired={generated('noise/paired') / 'documents'}",
        f"neighbour={NEIGHBOUR}",
    ]
    return quarry("noise", [asked], documents, *more, report=name, gated=gated)


def passes(names: Sequence[str]) -> list[str]:
    """How many cases of the first report pass in each, and which of them fail there."""
    passed: dict[str, set[str]] = {}
    names = [name for name in names if (REPORTS / f"{name}.json").is_file()]
    for name in names:
        run = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))["runs"][-1]
        passed[name] = {each["id"] for each in run["cases"] if each["passed"]}
    if not names:
        return []
    asked = [case["id"] for case in plain_cases()]
    first = [each for each in asked if each in passed[names[0]]]
    lines = ["the handbook's questions:"]
    for name in names:
        lost = ", ".join(each for each in first if each not in passed[name])
        count = sum(each in passed[name] for each in asked)
        lines.append(f"  {name}: {count} of {len(asked)} pass; lost: {lost or 'none'}")
    return lines


def within(source: str, filter: str) -> str:
    return f"source = {source} and ({filter})" if filter else f"source = {source}"


def evaluate(name: str, sets: Sequence[str]) -> int:
    folder = EXAMPLES / name
    source = name.rpartition("-")[2]
    return quarry(name, [folder / each for each in sets], [f"{source}={folder / 'documents'}"])


def quarry(
    name: str,
    sets: Sequence[Path],
    documents: Sequence[str],
    *more: str,
    report: str = "",
    gated: bool = True,
) -> int:
    """One call of quarry eval, as a person would make it. `report` is the example's name."""
    folder = EXAMPLES / name
    command = ["eval", *map(str, sets), "--config", str(folder / "quarry.yaml")]
    command += [part for each in documents for part in ("--documents", each)]
    if gated:
        command += ["--gate", str(folder / "gate.yaml")]
    for option, ending in (("--save", "json"), ("--html", "html"), ("--junit", "xml")):
        command += [option, str(REPORTS / f"{report or name}.{ending}")]
    return run([*command, *more])


STEPS = {
    "crowd": crowd,
    "robotics-handbook": handbook,
    "paired-handbook": paired,
    "orders": orders,
    "outdoor-shop": shop,
    "noise": noise,
    "planted": planted,
}
"""In the order in which they begin: the longest first."""


NEEDS = {"noise": ("crowd", "robotics-handbook")}
"""What must have been evaluated before, in the run or by an earlier one; it begins earlier too."""


AT_ONCE = 3
"""More than the cores of a small machine: each waits for its workers to start for a while."""


ON_DEMAND = frozenset({"planted"})
"""Only by name: the extractive generator quotes a page that is headed by the very question, so this
one is not passed by it."""


if __name__ == "__main__":
    sys.exit(main())
