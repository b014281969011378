"""The program run within the test's own process, which is much faster than starting it, and a server for it to ask."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from kpreempt.cli import process
from tests.documents import objects_of
from tests.fake_api import FakeApi, FakeCluster, objects_by_kind

DEMO = Path(__file__).parents[3] / "fixtures" / "demo"


class Run(NamedTuple):
    """How a run ended, and what it wrote."""

    returncode: int
    stdout: str
    stderr: str

    @property
    def complaint(self) -> str:
        """Standard error without the label of an error."""
        return re.sub(r"(?m)^error: ", "", self.stderr)


Kpreempt = Callable[..., Run]


@pytest.fixture
def kpreempt(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Kpreempt:
    """Runs ``kpreempt ARGUMENTS`` with ``stdin``, at 80 columns and off a terminal."""
    monkeypatch.setenv("COLUMNS", "80")
    # Whoever runs the tests may have a cluster.
    monkeypatch.setenv("HOME", "/nonexistent")
    for variable in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(variable, raising=False)

    def run(*arguments: str, stdin: str = "") -> Run:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        code = process.run(arguments)
        written = capsys.readouterr()
        return Run(code, written.out, written.err)

    return run


@pytest.fixture
def cluster() -> FakeCluster:
    """The example cluster, as a server has it."""
    return FakeCluster(objects_by_kind(objects_of(DEMO / "cluster.yaml")))


@pytest.fixture
def server(cluster: FakeCluster) -> Iterator[FakeApi]:
    with FakeApi(cluster) as running:
        yield running
