"""The program with real Volcano sessions: built once from ``tests/volcano_reference``, then used over pipes."""

from __future__ import annotations

from pathlib import Path

from tests.parity.reference import CHECKOUT, Recipe, built, built_for_tests

SOURCES = CHECKOUT / "tests" / "volcano_reference"
NAME = "volcano-reference"


def volcano_program() -> Path:
    """The path of the program, rebuilt if the sources have changed.

    Raises ``UnavailableError`` if Go or the modules are missing, and ``RuntimeError`` if the build fails, or the
    upstream code does not match its patches.
    """
    return built(_recipe())


def volcano_program_for_tests() -> Path:
    """The program's path; or skip the test with the reason. It is built in CI, and on request."""
    return built_for_tests(_recipe())


def _recipe() -> Recipe:
    sources = [path for path in sorted(SOURCES.rglob("*")) if path.suffix in (".go", ".mod") or path.name == "build"]
    return Recipe(NAME, SOURCES, sources, "Volcano", "volcano-parity")
