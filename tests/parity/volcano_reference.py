"""The program of genuine Volcano sessions: built once from ``tests/volcano_reference``, then asked over pipes."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.parity.reference import BUILD_SECONDS, CHECKOUT, UnavailableError

SOURCES = CHECKOUT / "tests" / "volcano_reference"
CACHE = CHECKOUT / ".cache" / "volcano_reference"
NAME = "volcano-reference"
# The build's exit status where modules are missing.
MISSING = 3


def volcano_program(*, may_build: bool = True) -> Path:
    """The path of the program, built where the sources have changed since the last time.

    Raises ``UnavailableError`` where it is not built and ``may_build`` is not given, or Go or the modules are missing,
    and ``RuntimeError`` where the build fails, or the genuine code is not what its changes expect.
    """
    path = CACHE / _fingerprint() / NAME
    if path.exists():
        return path
    if shutil.which("go") is None:
        raise UnavailableError("Go is not installed")
    if not may_build:
        raise UnavailableError(f"{NAME} is not built, which takes minutes; make volcano-parity builds it")
    partial = path.parent / f"partial.{os.getpid()}"
    built = subprocess.run(
        [SOURCES / "build", partial], capture_output=True, text=True, check=False, timeout=BUILD_SECONDS
    )
    if built.returncode == MISSING:
        raise UnavailableError(f"the Go modules of Volcano are not there: {built.stderr.strip().splitlines()[-1]}")
    if built.returncode:
        raise RuntimeError(f"building {NAME} failed:\n{built.stderr}")
    (partial / NAME).replace(path)
    partial.rmdir()
    return path


def volcano_program_for_tests() -> Path:
    """The program's path, or the test is skipped with the reason. It is built in CI, and where it is asked for."""
    try:
        return volcano_program(may_build=any(os.environ.get(variable) for variable in ("CI", "KPREEMPT_BUILD")))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def _fingerprint() -> str:
    digest = hashlib.sha256()
    for path in sorted(SOURCES.rglob("*")):
        if path.suffix in (".go", ".mod") or path.name == "build":
            digest.update(f"{path.relative_to(SOURCES)}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
