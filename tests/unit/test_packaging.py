"""The pinned versions install the project and nothing that it must not pull."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REPO = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [
    Requirement(line)
    for line in [*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"]]
]
LINES = [
    line
    for line in (REPO / "constraints.txt").read_text(encoding="utf-8").splitlines()
    if line and not line.startswith("#")
]
PINS = {canonicalize_name(line.partition("==")[0]): line.partition("==")[2] for line in LINES}


@pytest.mark.parametrize("line", LINES)
def test_a_constraint_is_one_exact_public_version(line: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.]+", line), "no paths, addresses, local tags"


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=lambda requirement: requirement.name)
def test_every_dependency_is_pinned_to_a_version_that_fits(requirement: Requirement) -> None:
    pinned = PINS.get(canonicalize_name(requirement.name))
    assert pinned is not None, "run: make constraints"
    assert requirement.specifier.contains(pinned, prereleases=True)


@pytest.mark.parametrize("unwanted", ["torchvision", "torchaudio", "torchcodec"])
def test_packages_that_break_beside_a_cpu_torch_are_not_installed(unwanted: str) -> None:
    assert unwanted not in PINS


def test_the_licence_files_that_the_package_names_are_there() -> None:
    for name in PROJECT["license-files"]:
        assert (REPO / name).stat().st_size > 0
    assert "Apache License" in (REPO / "LICENSE").read_text(encoding="utf-8")
    assert "AGPL" in (REPO / "NOTICE").read_text(encoding="utf-8")
