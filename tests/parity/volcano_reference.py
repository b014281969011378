"""The program of genuine Volcano sessions: built once from ``tests/volcano_reference``, then asked over pipes."""

from __future__ import annotations

from pathlib import Path

from tests.parity.reference import CHECKOUT, Recipe, built, built_for_tests

SOURCES = CHECKOUT / "tests" / "volcano_reference"
NAME = "volcano-reference"


def volcano_program() -> Path:
    """The path of the program, built where the sources have changed since the last time.

    Raises ``UnavailableError`` where Go or the modules are missing, and ``RuntimeError`` where the build fails, or the
    genuine code is not what its changes expect.
    """
    return built(_recipe())


def volcano_program_for_tests() -> Path:
    """The program's path, or the test is skipped with the reason. It is built in CI, and where it is asked for."""
    return built_for_tests(_recipe())


def _recipe() -> Recipe:
    sources = [path for path in sorted(SOURCES.rglob("*")) if path.suffix in (".go", ".mod") or path.name == "build"]
    return Recipe(NAME, SOURCES, sources, "Volcano", "volcano-parity")
