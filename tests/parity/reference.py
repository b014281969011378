"""The reference program: built once from ``tests/reference``, then used over pipes."""

from __future__ import annotations

import hashlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import pytest

from kpreempt.scheduler_table import DEFAULT_VERSION

CHECKOUT = Path(__file__).resolve().parents[2]
SOURCES = CHECKOUT / "tests" / "reference"
# The command that builds each program, for those who only run the tests.
MAKES = {
    "reference": "parity",
    "controlplane": "live",
    "controllers": "controllers-parity",
    "cache": "parity",
    "apiserver": "parity",
}
ANSWER_SECONDS = 60
BUILD_SECONDS = 1800
# The build's exit status if modules are missing.
MISSING = 3

Scenario = dict[str, Any]
Answer = dict[str, Any]


class UnavailableError(Exception):
    """The programs cannot be built here; the text says why."""


class Recipe(NamedTuple):
    """How a program is built: by ``build`` in ``folder``, with ``options``, the output path, and the ``arguments``.

    ``sources`` are its source files in a fixed order: if one of them changed, it is rebuilt. ``modules`` names the
    program whose Go modules it uses, ``target`` the make target that builds it.
    """

    name: str
    folder: Path
    sources: Sequence[Path]
    modules: str
    target: str
    arguments: Sequence[str] = ()
    options: Sequence[str] = ()

    def fingerprint(self) -> str:
        """A short hash of the sources."""
        digest = hashlib.sha256()
        for path in self.sources:
            digest.update(f"{path.relative_to(self.folder)}\n".encode())
            digest.update(path.read_bytes())
        return digest.hexdigest()[:16]


def program(name: str, version: str = DEFAULT_VERSION, *, may_build: bool = True) -> Path:
    """The path of one of the programs in ``MAKES``, rebuilt if its sources have changed.

    ``version`` is a minor version of Kubernetes; for other than the newest only ``reference`` is built, and for some
    ``controlplane`` (``tests/reference/README.md``).

    Raises ``UnavailableError`` if it is not built and ``may_build`` is not set, or Go or the modules are missing, and
    ``RuntimeError`` if the build fails.
    """
    return built(_recipe(name, version), may_build=may_build)


def program_for_tests(name: str, version: str = DEFAULT_VERSION) -> Path:
    """The program's path; or skip the test with the reason. It is built in CI, and on request."""
    return built_for_tests(_recipe(name, version))


def built(recipe: Recipe, *, may_build: bool = True) -> Path:
    """The path of a program, rebuilt if its sources have changed.

    Raises ``UnavailableError`` if it is not built and ``may_build`` is not set, or Go or the modules are missing, and
    ``RuntimeError`` if the build fails.
    """
    name = recipe.name
    path = CHECKOUT / ".cache" / recipe.folder.name / recipe.fingerprint() / name
    if path.exists():
        return path
    if shutil.which("go") is None:
        raise UnavailableError("Go is not installed")
    if not may_build:
        raise UnavailableError(f"{name} is not built, which takes minutes; make {recipe.target} builds it")
    partial = path.parent / f"{name}.{os.getpid()}"
    command = [recipe.folder / "build", *recipe.options, partial, *recipe.arguments]
    until = float(os.environ.get("KPREEMPT_BUILD_UNTIL", "inf"))
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as build:
        try:
            _, errors = build.communicate(timeout=max(min(BUILD_SECONDS, until - time.time()), 0))
        except subprocess.TimeoutExpired as error:
            os.killpg(build.pid, signal.SIGTERM)
            raise UnavailableError(f"there was not enough time to build {name}") from error
    if build.returncode == MISSING:
        raise UnavailableError(f"the Go modules of {recipe.modules} are not there: {errors.strip().splitlines()[-1]}")
    if build.returncode:
        raise RuntimeError(f"building {name} failed:\n{errors}")
    (partial / name).replace(path)
    partial.rmdir()
    return path


def built_for_tests(recipe: Recipe) -> Path:
    """A program's path; or skip the test with the reason. It is built in CI, and on request."""
    try:
        return built(recipe, may_build=any(os.environ.get(variable) for variable in ("CI", "KPREEMPT_BUILD")))
    except UnavailableError as reason:
        pytest.skip(str(reason))


def version_of(reference: Path) -> str:
    """The version of the scheduler in the reference program."""
    return subprocess.run([reference, "-version"], capture_output=True, text=True, check=True).stdout.strip()


# The folder outside ``cmd`` that a program also needs.
_PACKAGES = {"apiserver": "jsonlines", "controllers": "controllers", "reference": "jsonlines"}


def _recipe(name: str, version: str) -> Recipe:
    """What the program is built from, without the sources of other programs, so that they need no rebuild."""
    folders = [SOURCES / "cmd" / name]
    if name in _PACKAGES:
        folders.append(SOURCES / _PACKAGES[name])
    sources = [path for folder in folders for path in sorted(folder.rglob("*")) if path.suffix in (".go", ".yaml")]
    pinned = [SOURCES / "go.mod", SOURCES / "go.sum"]
    target, options = MAKES[name], []
    if version != DEFAULT_VERSION:
        pinned += sorted((SOURCES / "versions").glob(f"{version}.*"))
        pinned += sorted((SOURCES / "internals").iterdir())
        target, options = f"{target} VERSION={version}", ["--version", version]
    return Recipe(name, SOURCES, (SOURCES / "build", *pinned, *sources), "tests/reference", target, [name], options)


class Reference:
    """A running reference program, for one scenario after the other."""

    def __init__(self, path: Path, arguments: Sequence[str] = ()) -> None:
        self._process = subprocess.Popen([path, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input, self._output = self._process.stdin, self._process.stdout
        os.set_blocking(self._output.fileno(), False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._output, selectors.EVENT_READ)

    def ask(self, scenario: Scenario, *, seconds: float = ANSWER_SECONDS) -> Answer:
        """The result for one scenario: its verdict or its error.

        Raises ``RuntimeError`` if the program ends or times out.
        """
        self._input.write(json.dumps(scenario).encode() + b"\n")
        self._input.flush()
        line = b""
        while not line.endswith(b"\n"):
            if not self._selector.select(seconds):
                raise RuntimeError(f"no answer within {seconds} s")
            piece = os.read(self._output.fileno(), 1 << 20)
            if not piece:
                raise RuntimeError(f"the reference ended with {self._process.wait()}")
            line += piece
        answer: Answer = json.loads(line)
        return answer

    def close(self) -> None:
        """Stop the program."""
        self._selector.close()
        self._input.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._output.close()


class Genuine:
    """The real scheduler's verdicts, with and without a scheduling queue."""

    def __init__(self, path: Path) -> None:
        self._bare = Reference(path)
        self._queued = Reference(path, ["-live"])

    def __enter__(self) -> Genuine:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self._bare.close()
        self._queued.close()

    def answer(self, scenario: Scenario) -> Answer:
        """The result for a scenario, which may be ``queued``."""
        program = self._queued if scenario.get("queued") else self._bare
        return program.ask(scenario)
