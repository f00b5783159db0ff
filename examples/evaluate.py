"""Evaluates every example against its gate: make eval-examples, or python examples/evaluate.py.

Everything it writes is in `.evals` of the checkout; the reports are in `.evals/reports`. Two run at
once. A second run only searches. With names, only those examples are evaluated; `planted` is one
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
from concurrent.futures import ThreadPoolExecutor
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
    names = parser.parse_args(arguments).names or [name for name in STEPS if name not in ON_DEMAND]
    REPORTS.mkdir(parents=True, exist_ok=True)
    if len(names) == 1:
        return STEPS[names[0]]()
    chains = [chain for part in CHAINS if (chain := [name for name in part if name in names])]
    with ThreadPoolExecutor(len(chains)) as pool:
        outcomes = [each for found in pool.map(one_after_another, chains) for each in found]
    print_line()
    for each in outcomes:
        told = {0: "ok", 4: "GATE FAILED"}.get(each.code, f"exit {each.code}")
        print_line(f"{each.name:<20} {each.seconds:>6.0f} s  {told}")
    return max(each.code for each in outcomes)


def one_after_another(names: Sequence[str]) -> list[Outcome]:
    """Evaluates each in a process of its own, and prints what it said when it is done."""
    threads = str(max(1, (os.cpu_count() or 1) // len(CHAINS)))
    outcomes = []
    for name in names:
        print_line(f"=== {name} begins")
        sys.stdout.flush()
        began = time.monotonic()
        done = subprocess.run(  # noqa: S603
            [sys.executable, __file__, name],
            env={**os.environ, "OMP_NUM_THREADS": threads},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        print_line(f"\n=== {name}\n{done.stdout}")
        sys.stdout.flush()
        seconds = time.monotonic() - began
        outcomes.append(Outcome(name=name, code=done.returncode, seconds=seconds))
    return outcomes


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
    name = f"R@{report['depths']['sent']}"
    for each in report["runs"]:
        same, other, held_out = (
            each["slices"][slice_name]["measures"][name]
            for slice_name in ("same-words", "other-words", "half: held out")
        )
        lines.append(
            f"  {each['label']}: {same:.2f} in the page's words, {other:.2f} in others "
            f"(held out {held_out:.2f}); the gap is {same - other:.2f}"
        )
    return lines


def noise() -> int:
    """The handbook's questions with four other corpora in the index: filtered to their source, and
    not."""
    if not NEIGHBOUR.is_file():
        print_line(f"left out: there is no {os.path.relpath(NEIGHBOUR)}")
        return 1 if os.environ.get("QUARRY_CI") == "1" else 0
    folder = EVALS / "noise"
    folder.mkdir(exist_ok=True)
    cases = (EXAMPLES / "robotics-handbook" / "questions.jsonl").read_text(encoding="utf-8")
    plain = [json.loads(line) for line in cases.splitlines()]
    named = [case | {"filter": within("handbook", case.get("filter", ""))} for case in plain]
    for name, made in (("unfiltered", plain), ("filtered", named)):
        lines = [json.dumps(case, ensure_ascii=False) + "\n" for case in made]
        (folder / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    documents = [
        f"handbook={EXAMPLES / 'robotics-handbook' / 'documents'}",
        f"shop={EXAMPLES / 'outdoor-shop' / 'documents'}",
        f"orders={EXAMPLES / 'orders' / 'documents'}",
        f"paired={generated('noise/paired') / 'documents'}",
        f"neighbour={NEIGHBOUR}",
    ]
    alone = ["--baseline", str(REPORTS / "robotics-handbook.json")]
    code = quarry("noise", [folder / "filtered.jsonl"], documents, *alone)
    crowded = ["--baseline", str(REPORTS / "noise.json"), "--save", str(REPORTS / "crowded.json")]
    quarry("noise", [folder / "unfiltered.jsonl"], documents, *crowded, gated=False)
    return code


def within(source: str, filter: str) -> str:
    return f"source = {source} and ({filter})" if filter else f"source = {source}"


def evaluate(name: str, sets: Sequence[str]) -> int:
    folder = EXAMPLES / name
    source = name.rpartition("-")[2]
    return quarry(name, [folder / each for each in sets], [f"{source}={folder / 'documents'}"])


def quarry(
    name: str, sets: Sequence[Path], documents: Sequence[str], *more: str, gated: bool = True
) -> int:
    """One call of quarry eval, as a person would make it."""
    folder = EXAMPLES / name
    command = ["eval", *map(str, sets), "--config", str(folder / "quarry.yaml")]
    command += [part for each in documents for part in ("--documents", each)]
    if gated:
        command += ["--gate", str(folder / "gate.yaml")]
        command += [
            "--save", str(REPORTS / f"{name}.json"),
            "--html", str(REPORTS / f"{name}.html"),
            "--junit", str(REPORTS / f"{name}.xml"),
        ]  # fmt: skip
    return run([*command, *more])


STEPS = {
    "outdoor-shop": shop,
    "planted": planted,
    "robotics-handbook": handbook,
    "orders": orders,
    "paired-handbook": paired,
    "noise": noise,
}


CHAINS = (
    ("robotics-handbook", "noise"),  # which is compared with it
    ("outdoor-shop", "orders", "paired-handbook", "planted"),
)
"""What is evaluated beside each other, and what one after another."""


ON_DEMAND = frozenset({"planted"})
"""Only by name: the extractive generator quotes a page that is headed by the very question, so this
one is not passed by it."""


if __name__ == "__main__":
    sys.exit(main())
