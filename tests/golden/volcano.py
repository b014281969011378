"""The golden files of Volcano: ``fixtures/golden/volcano``, on the scenarios of ``fixtures/volcano``."""

from __future__ import annotations

from pathlib import Path

from tests.golden.answers import FIXTURES, written_by
from tests.golden.cases import NOW

ROOT = FIXTURES / "golden" / "volcano"
SCENARIOS = FIXTURES / "volcano"


def _on(name: str) -> list[str]:
    """The options for a scenario: its cluster, and its configuration if it has one."""
    configuration = SCENARIOS / f"{name}.conf"
    options = ["--snapshot", str(SCENARIOS / f"{name}.yaml"), "--now", NOW]
    return [*options, "--scheduler-config", str(configuration)] if configuration.exists() else options


def _session(name: str, *more: str) -> list[str]:
    return ["volcano", *_on(name), *more]


def _submitted(job: str, name: str, *more: str) -> list[str]:
    return ["explain", "--algorithm", "volcano-1.8", "-f", str(SCENARIOS / f"{job}.yaml"), *_on(name), *more]


# The arguments of each golden file.
ANSWERS: dict[str, list[str]] = {
    "gang-rolled-back.txt": _session("gang-rolled-back"),
    "gang-rolled-back-verbose.txt": _session("gang-rolled-back", "--verbose"),
    "gang-rolled-back.json": _session("gang-rolled-back", "-o", "json"),
    "gang-rolled-back.md": _session("gang-rolled-back", "-o", "markdown"),
    "reclaim-across-queues.txt": _session("reclaim-across-queues"),
    "vetoed-by-gang.txt": _session("vetoed-by-gang"),
    "second-tier-decides-alone.txt": _session("second-tier-decides-alone"),
    "panic-foretold.txt": _session("panic-foretold"),
    "overcommit-keeps-out.txt": _session("overcommit-keeps-out"),
    "evicted-in-vain.txt": _session("evicted-in-vain"),
    "either-node.txt": _session("either-node", "--runs", "40", "--seed", "1"),
    "job-bound.txt": _submitted("job-single", "shared-cluster"),
    "job-with-victims.txt": _submitted("job-rush", "busy-training"),
    "job-kept-out.txt": _submitted("job-huge", "shared-cluster"),
    "job-waits.txt": _submitted("job-rush", "shared-cluster"),
}


def answer(name: str, folder: Path) -> str:
    """The current output of kpreempt at 80 columns, through a file in ``folder``."""
    return written_by(ANSWERS[name], folder / name)
