"""One control plane for all live tests, and a count of the comparisons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from tests.live import cluster
from tests.live.plane import ControlPlane, program

COMPARED: Counter[str] = Counter()


@pytest.fixture
def compared() -> Counter[str]:
    """The number of pods per outcome."""
    return COMPARED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print how much was compared."""
    if COMPARED:
        ends = ", ".join(f"{count} {end}" for end, count in COMPARED.most_common())
        terminalreporter.write_line(f"live: {ends}")


@pytest.fixture(scope="session")
def plane() -> Iterator[ControlPlane]:
    """A control plane with what all scenarios share; the tests are skipped if it cannot be built."""
    with ControlPlane(program()) as running:
        cluster.prepare(running)
        yield running
