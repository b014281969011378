"""The schedulers that are modeled, a row each: the release that each follows, and what sets it apart.

From these rows come the names that ``--algorithm`` takes, its help and completion, ``kpreempt algorithms`` and
``kpreempt version``, and what reports say of a scheduler that not all have in common. It stands below the records and
loads nothing, since ``--help`` needs it. What differs between today's versions is in ``schedulers/kube/versions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SchedulerRow(NamedTuple):
    """A scheduler. ``release`` is the one of its project that it follows, ``differences`` are its ways in words.

    It has ``choice_rules`` rules by which it chooses between nodes. ``reads_budgets`` says whether
    PodDisruptionBudgets mean anything to it, ``has_queue`` whether its scheduling queue is modeled. An old scheduler is
    in its ``module``.
    """

    release: str
    differences: tuple[str, ...]
    project: str = "Kubernetes"
    choice_rules: int = 5
    reads_budgets: bool = True
    has_queue: bool = True
    module: str = ""


# Today's kube-schedulers, which one engine models: what each minor version stands for, the release whose decisions are
# recorded. The oldest comes first.
RELEASES: Mapping[str, str] = {
    "1.29": "1.29.6",
    "1.30": "1.30.14",
    "1.31": "1.31.14",
    "1.32": "1.32.13",
    "1.33": "1.33.13",
    "1.34": "1.34.4",
    "1.35": "1.35.4",
    "1.36": "1.36.3",
    "1.37": "1.37.1",
}
# The version that stands where none is named and no cluster has one of its own, as in a line of ``batch``.
DEFAULT_VERSION = "1.36"
LATEST_VERSION = list(RELEASES)[-1]
PREFIX = "kube-"
DEFAULT_ALGORITHM = f"{PREFIX}{DEFAULT_VERSION}"
LATEST_ALGORITHM = f"{PREFIX}{LATEST_VERSION}"
# Those of one engine, which also go by their releases (``kube-1.34.1``).
KUBE_ALGORITHMS = tuple(f"{PREFIX}{minor}" for minor in RELEASES)
# As options name all of them.
KUBE_RANGE = f"{KUBE_ALGORITHMS[0]}...{LATEST_VERSION}"

# What the default one does differently from the old ones, and what the others have in common with it.
KUBE_ROW = SchedulerRow(
    f"v{RELEASES[DEFAULT_VERSION]}",
    (
        "The default. preemptionPolicy Never always counts.",
        "The pod waits only for victims with the condition DisruptionTarget, and not where preemption cannot help.",
        "Every budget of a victim is counted; pods in disruptedPods are skipped.",
        "Victims are sorted by importance again, so the rule of the highest victim is about the highest.",
        "Nodes without lower-priority pods are skipped, and so are candidates without victims.",
        "On big clusters the search stops at enough candidates: the answer has the odds.",
        "Nodes that fit are scored; the whole KubeSchedulerConfiguration counts.",
    ),
)
LEGACY_ROWS: Mapping[str, SchedulerRow] = {
    "kube-1.8": SchedulerRow(
        "v1.8.15",
        (
            "Every predicate runs and every reason is reported. Eight failures exclude a node from preemption.",
            "PodDisruptionBudgets are ignored.",
            "The nominated node is an annotation and reserves nothing: other pods may take what the victims leave.",
            "Victims by priority alone. The node by highest victim, sum and number of victims; then any.",
            "Extenders are called for the chosen node without its victims; where one refuses, the next best follows.",
            "Host ports conflict by number alone. Each pod affinity term may be met by a different pod.",
            "The feature gate PodPriority is assumed on. By default it was off, and nothing was preempted.",
        ),
        choice_rules=3,
        reads_budgets=False,
        module="v1_8",
    ),
    "kube-1.13": SchedulerRow(
        "v1.13.12",
        (
            "The first predicate that fails decides. Sixteen failures exclude a node from preemption.",
            "A victim violates a budget that allows no disruption now. Nothing is counted: one allowed covers many.",
            "Pods that would violate a budget are reprieved first, and come first among the victims.",
            "The nominated node is in the status. Nominated pods of equal or higher priority count on their node.",
            "The node by PDB violations, the first victim's priority (not the highest), sum and number; then any.",
            "Extenders with a preempt verb change the candidates before the choice.",
            "Lower-priority pods lose their nomination to the chosen node; the pod its own where no node helps.",
        ),
        choice_rules=4,
        module="v1_13",
    ),
    "kube-1.18": SchedulerRow(
        "v1.18.19",
        (
            "Filter plugins; the first that fails decides. UnschedulableAndUnresolvable excludes the node.",
            "preemptionPolicy Never counts only with the gate NonPreemptingPriority, which is off by default.",
            "Of equal priority, the pod that started earlier is more important.",
            "Budgets are counted: each victim uses a disruption of its budgets, until the first that has none left.",
            "One more rule for the node: the latest start among its highest victims.",
            "Topology spread is a filter; init containers and overhead count for running pods.",
            "Victims waiting at Permit are rejected; lower-priority pods lose their nomination to the chosen node.",
        ),
        has_queue=False,
        module="v1_18.version",
    ),
}
# Runs sessions on whole jobs rather than to decide on a pod (``analysis.volcano``).
VOLCANO = "volcano-1.8"
# Runs cycles on whole Workloads (``analysis.kueue``).
KUEUE = "kueue-0.19"
OTHER_ROWS: Mapping[str, SchedulerRow] = {
    VOLCANO: SchedulerRow(
        "v1.8.0",
        (
            "Schedules all jobs at once, in a session of actions; a gang is placed whole or not at all.",
            "By default nothing is evicted: neither preempt nor reclaim is among the actions.",
            "PodDisruptionBudgets are ignored. Plugins vote on victims, tier by tier.",
            "preempt evicts within a queue, and rolls back where the gang cannot be placed.",
            "reclaim evicts across queues, at once, from those above their deserved share.",
            "A pipelined placement lasts one session: in the next one others may take it.",
            "For explain, batch and compare; kpreempt volcano runs a whole session.",
        ),
        project="Volcano",
        reads_budgets=False,
        has_queue=False,
    ),
    KUEUE: SchedulerRow(
        "v0.19.2",
        (
            "Gives whole Workloads quota of a ClusterQueue and its cohorts, before any pod is there.",
            "PodDisruptionBudgets are ignored. Whole Workloads are preempted: their jobs are suspended.",
            "Within a ClusterQueue by priority; across a cohort to reclaim quota, or by Fair Sharing.",
            "Nodes are looked at for flavors with a topology alone.",
            "For explain and batch.",
        ),
        project="Kueue",
        reads_budgets=False,
        has_queue=False,
    ),
}
# Those that decide on a pod, and all.
ALGORITHMS = (*LEGACY_ROWS, *KUBE_ALGORITHMS)
ALL_ALGORITHMS = (*ALGORITHMS, *OTHER_ROWS)


def row_of(algorithm: str) -> SchedulerRow:
    """The row of an algorithm; today's have one in common, whatever their release."""
    return LEGACY_ROWS.get(algorithm) or OTHER_ROWS.get(algorithm) or KUBE_ROW


# Those whose scheduling queue is modeled.
QUEUE_ALGORITHMS = tuple(each for each in ALGORITHMS if row_of(each).has_queue)
