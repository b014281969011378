from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
_PIN = re.compile(
    r"^(?P<name>[A-Za-z0-9._-]+)==(?P<version>\S+?)(?: ; [^\\\n]+?)? \\\n(?P<hashes>(?: +--hash=\S+(?: \\)?\n)+)", re.M
)


def pins(lock: str) -> set[tuple[str, str]]:
    """Names and versions of what a lock file names with hashes; a name may have a version per release of Python."""
    text = (ROOT / lock).read_text(encoding="utf-8")
    return {(canonicalize_name(match["name"]), match["version"]) for match in _PIN.finditer(text)}


RUNTIME = [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["build"]]
DEVELOPMENT = [*RUNTIME, *PROJECT["dependency-groups"]["dev"]]


@pytest.mark.parametrize(
    ("lock", "requirements"), [("requirements.lock", RUNTIME), ("requirements-dev.lock", DEVELOPMENT)]
)
def test_every_requirement_is_locked_at_a_version_that_it_allows(lock: str, requirements: list[str]) -> None:
    locked = pins(lock)
    for text in requirements:
        requirement = Requirement(text)
        name = canonicalize_name(requirement.name)
        versions = [version for each, version in locked if each == name]
        assert versions, f"{lock} lacks {name}: run `make lock`"
        assert all(map(requirement.specifier.contains, versions)), f"{lock} has {name} {versions}: run `make lock`"


@pytest.mark.parametrize("lock", ["requirements.lock", "requirements-dev.lock"])
def test_everything_in_a_lock_has_hashes_and_comes_from_no_named_place(lock: str) -> None:
    lines = (ROOT / lock).read_text(encoding="utf-8").splitlines()
    entries = [line for line in lines if line and not line.startswith((" ", "#"))]
    assert len(entries) == len(pins(lock))
    assert not any("://" in line or line.startswith("-") for line in lines)


def test_development_has_what_runs_at_the_same_versions() -> None:
    assert pins("requirements.lock") <= pins("requirements-dev.lock")
