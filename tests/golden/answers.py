"""The golden files for commands on many pods: ``fixtures/golden-answers``, on snapshots of ``fixtures``."""

from __future__ import annotations

import os
from pathlib import Path
from unittest import mock

from kpreempt.cli import process
from tests.golden.cases import NOW

FIXTURES = Path(__file__).parents[2] / "fixtures"
ROOT = FIXTURES / "golden-answers"
_ON_CALL = FIXTURES / "on-call"
_SNAPSHOT = ["--snapshot", str(_ON_CALL / "cluster.yaml"), "--now", NOW]
_EVENTS = ["--events", str(FIXTURES / "queue" / "events.yaml"), "--now", NOW]
_API = ["-f", str(FIXTURES / "compare" / "api.yaml")]
_FULL = ["--snapshot", str(FIXTURES / "compare" / "cluster.yaml"), "--now", NOW]
_ALL = ["compare", "--algorithms", "kube-1.8,kube-1.13,kube-1.18,kube-1.36"]
_UPGRADE = [
    *("compare", "--upgrade-to", "1.34", "--now", NOW),
    *("--snapshot", str(FIXTURES / "compare" / "upgrade.yaml")),
]
_BUDGETS = ["budgets", "--snapshot", str(FIXTURES / "budgets" / "cluster.yaml"), "--now", NOW]
_AFTER = FIXTURES / "aftermath"
_AFTERMATH = ["-f", str(_AFTER / "checkout.yaml"), "--snapshot", str(_AFTER / "cluster.yaml"), "--now", NOW]
_BEFORE = ["--before", str(_ON_CALL / "before.yaml")]
_EVICTIONS = ["--snapshot", str(FIXTURES / "evictions" / "cluster.yaml"), "--now", NOW]
_AUDIT_LOG = ["--audit-log", str(FIXTURES / "evictions" / "audit.log")]

_MISSING = ["--snapshot", str(FIXTURES / "missing-pods" / "cluster.yaml"), "--now", "2026-11-22T12:00:00Z"]

_PREEMPTED = ["--snapshot", str(FIXTURES / "preempted" / "cluster.yaml"), "--now", "2026-11-20T12:00:00Z"]

_KUEUE = FIXTURES / "kueue"
_QUEUED = ["explain", "--algorithm", "kueue-0.19", "--now", "2026-11-22T12:00:00Z"]
_TO_KUEUE = [*_QUEUED, "--snapshot", str(_KUEUE / "cluster.yaml")]

_BUSY = [
    *("--algorithm", "kueue-0.19", "--snapshot", str(_KUEUE / "busy.yaml")),
    *("--now", "2026-11-22T12:00:00Z"),
]

_RESIZE = ["--snapshot", str(FIXTURES / "resize" / "cluster.yaml"), "--now", NOW]
_PASTED = ["explain", "--now", NOW, "--event"]
_TEXTS = FIXTURES / "events"

# The arguments of each golden file.
ANSWERS: dict[str, list[str]] = {
    "resize-pending.txt": ["pending", *_RESIZE],
    "resize-explain.txt": ["explain", "db-0", "-n", "shop", *_RESIZE],
    "event-describe.txt": [*_PASTED, str(_TEXTS / "describe.txt")],
    "event-describe.md": [*_PASTED, str(_TEXTS / "describe.txt"), "-o", "markdown"],
    "event-message.txt": [*_PASTED, str(_TEXTS / "message.txt")],
    "event-message.json": [*_PASTED, str(_TEXTS / "message.txt"), "-o", "json"],
    "event-list.txt": [*_PASTED, str(_TEXTS / "list.txt")],
    "event-list-verbose.txt": [*_PASTED, str(_TEXTS / "list.txt"), "-v"],
    "aftermath.txt": ["explain", "--aftermath", *_AFTERMATH, "-v"],
    "aftermath.json": ["explain", "--aftermath", *_AFTERMATH, "-o", "json"],
    "kueue-reclaims.txt": [*_TO_KUEUE, "-f", str(_KUEUE / "train.yaml")],
    "kueue-pending.txt": [*_TO_KUEUE, "-f", str(_KUEUE / "wide.yaml")],
    "kueue-fair.txt": [
        *_TO_KUEUE,
        *("-f", str(_KUEUE / "wide.yaml"), "--scheduler-config", str(_KUEUE / "fair.yaml")),
    ],
    "kueue-refused-by-nodes.txt": [*_TO_KUEUE, "-f", str(_KUEUE / "large.yaml")],
    "kueue-topology.txt": [
        *_QUEUED,
        *("--snapshot", str(_KUEUE / "topology.yaml"), "-f", str(_KUEUE / "gang.yaml")),
    ],
    "kueue-borrows.txt": ["at-risk", "-n", "team", *_BUSY],
    "kueue-waiting.txt": ["pending", *_BUSY],
    "kueue-waiting.json": ["pending", *_BUSY, "-o", "json"],
    "kueue-preempted.txt": [*("who-evicted", "job-done", "-n", "team"), *_BUSY],
    "kueue-compared.txt": [
        *("compare", "--algorithms", f"kueue-0.19,kueue-0.19@{_KUEUE / 'fair.yaml'}"),
        *("-f", str(_KUEUE / "wide.yaml"), "--snapshot", str(_KUEUE / "cluster.yaml")),
        *("--now", "2026-11-22T12:00:00Z"),
    ],
    "pending-not-created.txt": ["pending", *_MISSING],
    "pending-not-created.json": ["pending", *_MISSING, "-n", "db", "-o", "json"],
    "explain-missing-account.txt": ["explain", "deploy/nosa", "-n", "shop", *_MISSING],
    "explain-rejected-by-a-quota.txt": ["explain", "deploy/quota", "-n", "shop", *_MISSING],
    "explain-paused-rollout.txt": ["explain", "deploy/web", "-n", "shop", *_MISSING],
    "explain-waits-for-an-unready-pod.txt": ["explain", "sts/store", "-n", "db", *_MISSING],
    "explain-suspended-job.txt": ["explain", "job/import", "-n", "shop", *_MISSING],
    "explain-job-in-backoff.txt": ["explain", "job/retry", "-n", "shop", *_MISSING],
    "explain-daemon-set.txt": ["explain", "ds/agent", "-n", "db", *_MISSING],
    "pending-preempted.txt": ["pending", *_PREEMPTED],
    "pending-preempted.json": ["pending", "-n", "shop", *_PREEMPTED, "-o", "json"],
    "at-risk-preempted.txt": ["at-risk", "-n", "loop", *_PREEMPTED],
    "explain-replaces-a-preempted-pod.txt": ["explain", "pod/filler-7f9-kxm42", "-n", "shop", *_PREEMPTED],
    "explain-replaces-one-of-several.txt": ["explain", "pod/encode-5c6-7tt69", "-n", "shop", *_PREEMPTED],
    "explain-workload-replaces-preempted-pods.txt": ["explain", "rs/encode-5c6", "-n", "shop", *_PREEMPTED],
    "explain-priority-inversion.txt": ["explain", "pod/x-84d-rj86f", "-n", "loop", *_PREEMPTED],
    "pending.txt": ["pending", *_SNAPSHOT],
    "pending-verbose.txt": ["pending", *_SNAPSHOT, "--verbose"],
    "pending-of-a-namespace.txt": ["pending", *_SNAPSHOT, "-n", "batch"],
    "pending.json": ["pending", *_SNAPSHOT, "-o", "json"],
    "pending.md": ["pending", *_SNAPSHOT, "-n", "shop", "-o", "markdown"],
    "who-evicted-reconstructed.txt": ["who-evicted", "encode-1", "-n", "batch", *_SNAPSHOT, *_BEFORE],
    "who-evicted-by-uid-only.txt": ["who-evicted", "encode-9", "-n", "batch", *_SNAPSHOT, *_BEFORE],
    "who-evicted-nobody.txt": ["who-evicted", "web-1", "-n", "shop", *_SNAPSHOT],
    "who-evicted.json": ["who-evicted", "encode-2", "-n", "batch", *_SNAPSHOT, *_BEFORE, "-o", "json"],
    **{
        f"who-evicted-{name}.txt": ["who-evicted", name, "-n", "shop", *_EVICTIONS]
        for name in ("critical", "pressure", "tainted", "drained", "orphan", "loop-0", "oom", "probed", "leaving")
    },
    "who-evicted-by-audit-log.txt": ["who-evicted", "evicted", "-n", "shop", *_EVICTIONS, *_AUDIT_LOG],
    "who-evicted-workload.txt": ["who-evicted", "rs/loop", "-n", "shop", *_EVICTIONS],
    "who-evicted-pressure.json": ["who-evicted", "pressure", "-n", "shop", *_EVICTIONS, "-o", "json"],
    "at-risk.txt": ["at-risk", "-n", "batch", *_SNAPSHOT],
    "at-risk-verbose.txt": ["at-risk", "-n", "batch", *_SNAPSHOT, "-v"],
    "at-risk-by-label.txt": ["at-risk", "-n", "shop", "-l", "app=web", *_SNAPSHOT],
    "queue-1.8.txt": ["queue", "--algorithm", "kube-1.8", *_SNAPSHOT],
    "queue-1.13.txt": ["queue", "--algorithm", "kube-1.13", *_SNAPSHOT],
    "queue-1.36.txt": ["queue", "--algorithm", "kube-1.36", *_SNAPSHOT],
    "queue-1.36-verbose.txt": ["queue", "--algorithm", "kube-1.36", *_SNAPSHOT, "-v"],
    "queue-played-1.8.txt": ["queue", "--algorithm", "kube-1.8", *_EVENTS],
    "queue-played-1.13.txt": ["queue", "--algorithm", "kube-1.13", *_EVENTS],
    "queue-played-1.36.txt": ["queue", "--algorithm", "kube-1.36", *_EVENTS],
    "queue-played-1.36-verbose.txt": ["queue", "--algorithm", "kube-1.36", *_EVENTS, "-v"],
    "queue.json": ["queue", *_EVENTS, "-o", "json"],
    "compare-all-differ.txt": [*_ALL, *_API, *_FULL],
    "compare-all-differ-verbose.txt": [*_ALL, *_API, *_FULL, "--verbose"],
    "compare-all-differ.json": [*_ALL, *_API, *_FULL, "-o", "json"],
    "compare-many.txt": [*_ALL, *_SNAPSHOT],
    "compare-many-verbose.txt": [*_ALL, *_SNAPSHOT, "-v"],
    "upgrade.txt": _UPGRADE,
    "upgrade-verbose.txt": [*_UPGRADE, "-v"],
    "upgrade.json": [*_UPGRADE, "-o", "json"],
    "budgets.txt": _BUDGETS,
    "budgets-of-a-namespace.txt": [*_BUDGETS, "-n", "batch"],
    "budgets.json": [*_BUDGETS, "-o", "json"],
    "verify.txt": ["verify", str(FIXTURES / "recording")],
    "verify.json": ["verify", str(FIXTURES / "recording"), "-o", "json"],
    "verify-again.txt": ["verify", str(FIXTURES / "recording-again")],
    "history-again.txt": ["history", "node/node-a", "--snapshot", "fixtures/recording-again"],
    "history-again.json": ["history", "api-x", "-n", "shop", "--snapshot", "fixtures/recording-again", "-o", "json"],
    "at-risk.json": ["at-risk", "-n", "batch", "--limit", "2", *_SNAPSHOT, "-o", "json"],
}


def answer(name: str, folder: Path) -> str:
    """The current output of kpreempt at 80 columns, through a file in ``folder``."""
    return written_by(ANSWERS[name], folder / name)


def written_by(arguments: list[str], path: Path, *, width: int = 80) -> str:
    """The output of kpreempt at this width, in the format of the arguments, through the file."""
    formats = [arguments[index + 1] for index, each in enumerate(arguments) if each == "-o"] or ["text"]
    plain = arguments[: arguments.index("-o")] if "-o" in arguments else arguments
    with mock.patch.dict(os.environ, {"COLUMNS": str(width)}):
        code = process.run([*plain, "-o", f"{formats[0]}={path}"])
    if code:
        raise RuntimeError(f"golden answer {path.name}: kpreempt ended with {code}")
    return path.read_text(encoding="utf-8")
