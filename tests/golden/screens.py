"""The screens of two terminal sizes: ``fixtures/golden-screens``, one file for each command and size.

The polls of a watch are in one file, each as the screen after it, separated by a line of dashes.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import chdir, contextmanager
from pathlib import Path
from unittest import mock

from kpreempt.cli import process
from kpreempt.cli.extensions import Extensions
from kpreempt.cli.on_call import pending
from kpreempt.cli.requests import PendingRequest
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.live.flags import ConnectionFlags
from tests.golden.answers import FIXTURES
from tests.golden.cases import NOW
from tests.golden.checks import NODE_HEALTH

ROOT = FIXTURES / "golden-screens"
SIZES = ((80, 24), (120, 40))
_FORTY = FIXTURES / "on-call" / "forty.yaml"
_VERSION = ["--algorithm", "kube-1.36", "--now", NOW]
_ON_CALL = ["--snapshot", str(FIXTURES / "on-call" / "cluster.yaml"), "--now", NOW]
_DRAIN = [
    *("-l", "pool=general", "--ignore-daemonsets", "--delete-emptydir-data"),
    *("--snapshot", str(FIXTURES / "drain" / "cluster.yaml")),
]


def _of_change(name: str, manifest: str) -> list[str]:
    """A change and its cluster, below ``fixtures/check``."""
    folder = f"fixtures/check/{name}"
    return ["-f", f"{folder}/{manifest}.yaml", "--snapshot", f"{folder}/cluster.yaml", *_VERSION]


_COMMANDS = {
    "pending": ["pending", "--snapshot", str(_FORTY), *_VERSION],
    "pending-on-nodes": ["pending", "--snapshot", str(FIXTURES / "pending" / "on-nodes.yaml"), *_VERSION],
    "pending-karpenter": ["pending", "--snapshot", str(FIXTURES / "autoscaling" / "karpenter.yaml"), *_VERSION],
    "pending-cluster-autoscaler": [
        *("pending", "--snapshot", str(FIXTURES / "autoscaling" / "cluster-autoscaler.yaml"), *_VERSION),
    ],
    "pending-long-names": ["pending", "--snapshot", str(FIXTURES / "screens" / "long-names.yaml"), *_VERSION],
    "pending-spread": ["pending", "--snapshot", str(FIXTURES / "screens" / "spread.yaml"), *_VERSION],
    "pending-gone-nodes": ["pending", "--snapshot", str(FIXTURES / "screens" / "gone-nodes.yaml"), *_VERSION],
    "pending-node-health": ["pending", "--snapshot", str(FIXTURES / "screens" / "node-health.yaml"), *_VERSION],
    "at-risk-node-health": [
        *("at-risk", "-n", "shop", "--snapshot", str(FIXTURES / "screens" / "node-health.yaml"), *_VERSION),
    ],
    "drain-node-health": [
        *("drain", "n1", "--ignore-daemonsets", "--assume-none", "pdb"),
        *("--snapshot", str(FIXTURES / "screens" / "node-health.yaml"), *_VERSION),
    ],
    "who-evicted": [
        *("who-evicted", "encode-1", "-n", "batch", *_ON_CALL),
        *("--before", str(FIXTURES / "on-call" / "before.yaml")),
    ],
    "who-evicted-namespace": [
        *("who-evicted", "-n", "shop", "--now", NOW),
        *("--snapshot", str(FIXTURES / "evictions" / "cluster.yaml")),
    ],
    "budgets": ["budgets", "--snapshot", str(FIXTURES / "budgets" / "cluster.yaml"), "--now", NOW],
    "at-risk": ["at-risk", "-n", "batch", *_ON_CALL],
    "at-risk-many": ["at-risk", "--snapshot", str(_FORTY), *_VERSION],
    "queue": ["queue", *_ON_CALL],
    "queue-events": ["queue", "--events", str(FIXTURES / "queue" / "events.yaml"), *_VERSION],
    "compare": ["compare", "--algorithms", "kube-1.8,kube-1.13,kube-1.18,kube-1.36", *_ON_CALL],
    "compare-upgrade": [
        *("compare", "--upgrade-to", "1.34", "--now", NOW),
        *("--snapshot", str(FIXTURES / "compare" / "upgrade.yaml")),
    ],
    "check": ["check", *_of_change("outage", "rollout")],
    "check-passes": ["check", *_of_change("release", "release")],
    "check-node-health": ["check", *NODE_HEALTH, *_VERSION],
    "drain": ["drain", *_DRAIN, *_VERSION],
    "drain-upgrade": ["drain", *_DRAIN, "--surge", "1", "--without", "pdb/shop/checkout", *_VERSION],
}
_FAILING = ("check", "check-node-health", "drain", "drain-node-health")
_WATCH = "pending-watch"
ANSWERS = {
    f"{name}-{width}x{height}.txt": (name, width, height) for name in (*_COMMANDS, _WATCH) for width, height in SIZES
}


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@contextmanager
def terminal(width: int, height: int) -> Iterator[_Terminal]:
    """Standard output, without color."""
    environment = {"COLUMNS": str(width), "LINES": str(height), "NO_COLOR": "1"}
    shown = _Terminal()
    with mock.patch.dict(os.environ, environment), mock.patch("sys.stdout", shown):
        yield shown


def answer(name: str, folder: Path) -> str:
    """The screen of a terminal with the size in the name."""
    command, width, height = ANSWERS[name]
    with terminal(width, height) as shown:
        if command == _WATCH:
            _watch(folder / "cluster.yaml")
            return "".join(f"{frame}{'-' * width}\n" for frame in _frames(shown.getvalue()))
        # Run in the project's root, so that file names do not contain its path.
        with chdir(FIXTURES.parent):
            code = process.run(_COMMANDS[command])
    if code != (command in _FAILING):
        raise RuntimeError(f"golden screen {name}: kpreempt ended with {code}")
    return shown.getvalue()


def _watch(path: Path) -> None:
    """Poll a cluster three times while things happen."""
    versions = iter(_versions())

    def wait(_: float) -> None:
        version = next(versions, None)
        if version is None:
            raise KeyboardInterrupt
        path.write_text(version, encoding="utf-8")

    path.write_text(_FORTY.read_text(encoding="utf-8"), encoding="utf-8")
    request = PendingRequest(
        snapshots=[str(path)], input_limits=InputLimits(), connection=ConnectionFlags(), extensions=Extensions(),
        watch=True, now=NOW, jobs=1, algorithm="kube-1.36",
    )  # fmt: skip
    try:
        pending(request, wait=wait)
    except KeyboardInterrupt:
        return


def _versions() -> Iterator[str]:
    """The cluster after a pod was bound and another was created, and then without a terminating victim."""
    lines = _FORTY.read_text(encoding="utf-8").splitlines(keepends=True)
    landing = next(number for number, line in enumerate(lines) if "name: landing-" in line)
    late = lines[landing].replace("landing-59c7d8b4f6", "landing-late")
    lines[landing] = lines[landing].replace("spec: {", "spec: {nodeName: free-01, ")
    yield "".join([*lines, late])
    yield "".join(line for line in [*lines, late] if "name: encode-" not in line)


def _frames(written: str) -> Iterator[str]:
    """The screen after each poll: output from the top, over the previous content."""
    for frame in written.split("\x1b[H\x1b[?7l")[1:]:
        text, _, _ = frame.partition("\x1b[J")
        yield text.replace("\x1b[K", "")
