"""The golden screens of ``kpreempt explain``: the terminal output of golden cases at two widths.

A file of ``fixtures/golden-screens/explain`` is named after the case and the width.
"""

from __future__ import annotations

from pathlib import Path

from tests.golden.answers import ANSWERS as LONG_ANSWERS
from tests.golden.answers import FIXTURES, written_by
from tests.golden.cases import NOW, explain_arguments

ROOT = FIXTURES / "golden-screens" / "explain"
_AFTERMATH = [each for each in LONG_ANSWERS["aftermath.txt"] if each != "-v"]
_CASES = (
    "budgets-violated",
    "chosen-at-random",
    "chosen-by-priority-sum",
    "devices-for-claims",
    "devices-of-lower-priority",
    "equal-pods",
    "fits-by-score",
    "fits-on-its-nominated-node",
    "gated",
    "long-names",
    "many-nodes",
    "many-nodes-never",
    "may-not-preempt",
    "never-lands",
    "node-loses-by-score",
    "node-loses-the-choice",
    "node-refuses-for-two-reasons",
    "several-pods",
    "uncertain-for-a-claim",
    "waits-for-its-victims",
)
_WORKLOADS = ["--snapshot", str(FIXTURES / "workloads" / "cluster.yaml"), "--algorithm", "kube-1.36"]
_AUTOSCALING = FIXTURES / "autoscaling"
_LATER = ["--algorithm", "kube-1.36", "--now", NOW]
_ARGUMENTS = {name: explain_arguments(name) for name in _CASES} | {
    "aftermath": _AFTERMATH,
    "karpenter": ["explain", "train-0", "-n", "shop", "--snapshot", str(_AUTOSCALING / "karpenter.yaml"), *_LATER],
    "cluster-autoscaler": [
        *("explain", "web-7", "-n", "shop", "--snapshot", str(_AUTOSCALING / "cluster-autoscaler.yaml"), *_LATER),
    ],
    "replicas": ["explain", "deploy/web", "-n", "shop", "--replicas", "45", *_WORKLOADS],
    "capacity": ["explain", "deploy/web", "-n", "shop", "--replicas", "9", "--capacity", *_WORKLOADS],
}

_PENDING = FIXTURES / "pending"
_NOW = ["--now", "2026-11-21T03:00:00Z", "--algorithm", "kube-1.36"]
_ARGUMENTS |= {
    "on-its-node": ["explain", "pg-0", "-n", "shop", "--snapshot", str(_PENDING / "on-nodes.yaml"), *_NOW],
    "still-pending": ["explain", "urgent", "-n", "shop", "--snapshot", str(_PENDING / "still-pending.yaml"), *_NOW],
    "victim-with-finalizer": [
        *("explain", "waiting", "-n", "shop", "--snapshot", str(_PENDING / "still-pending.yaml")),
        *_NOW,
    ],
}

# Small clusters in which one fact decides; names may be long.
_SCREENS = {
    "taints": "web -n shop",
    "taints-named-by-reasons": "web -n shop",
    "taints-of-long-names": (
        "payments-reconciler-settlement-worker-batch-6f7c9d8b5f-x2x4p -n payments-platform-production"
    ),
    "daemon-set": "exporter-4k7tz -n mon",
    "spread": "web-2 -n shop",
    "pod-on-another-node": "db-2 -n data",
    "request-parts": "etl -n data",
    "fragmented": "infer -n ml",
    "devices-selector": "infer -n ml",
    "devices-none": "infer -n ml",
    "gone-node-of-a-claim": "cache-0 -n shop",
    "gone-node-of-a-volume": "cache-1 -n shop",
    "gone-node-of-the-pod": "pinned -n shop",
    "node-not-ready": "web -n shop",
    "node-not-ready-requested": "web -n shop --node n1",
    "version-of-kubelets": "exporter-4k7tz -n mon",
}
_CLUSTERS = {
    "taints-named-by-reasons": "taints",
    "taints-of-long-names": "long-names",
    **dict.fromkeys(("gone-node-of-a-claim", "gone-node-of-a-volume", "gone-node-of-the-pod"), "gone-nodes"),
    **dict.fromkeys(("node-not-ready", "node-not-ready-requested"), "node-health"),
    "version-of-kubelets": "daemon-set",
}
_ALGORITHMS = {"taints-named-by-reasons": "kube-1.32", "version-of-kubelets": "auto"}
_ARGUMENTS |= {
    name: [
        *("explain", *arguments.split(), "--now", "2026-11-21T03:00:00Z"),
        *("--snapshot", str(FIXTURES / "screens" / f"{_CLUSTERS.get(name, name)}.yaml")),
        *("--algorithm", _ALGORITHMS.get(name, "kube-1.36")),
    ]
    for name, arguments in _SCREENS.items()
}

# The arguments and the width, by file.
ANSWERS: dict[str, tuple[list[str], int]] = {
    f"{name}-{width}.txt": (arguments, width) for name, arguments in _ARGUMENTS.items() for width in (80, 120)
} | {"brief.txt": ([*explain_arguments("chosen-by-priority-sum"), "--brief"], 80)}


def answer(name: str, folder: Path) -> str:
    """The current output of kpreempt, through a file in ``folder``."""
    arguments, width = ANSWERS[name]
    return written_by(arguments, folder / name, width=width)
