"""The modeled schedulers, a row each: the release that it follows, and how it differs.

These rows provide the names for ``--algorithm``, its help and completion, ``kpreempt algorithms`` and ``kpreempt
version``, and the differences between schedulers that reports mention. The module is below the records and imports
nothing, since ``--help`` needs it. Differences between current versions are in ``schedulers/kube/versions.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SchedulerRow(NamedTuple):
    """A scheduler. ``release`` is the upstream release that it follows; ``differences`` describes its behavior.

    ``choice_rules`` is the number of rules by which it chooses between nodes. ``reads_budgets`` is whether it considers
    PodDisruptionBudgets, ``has_queue`` whether its scheduling queue is modeled. ``module`` is the module of an old
    scheduler.
    """

    release: str
    differences: tuple[str, ...]
    project: str = "Kubernetes"
    choice_rules: int = 5
    reads_budgets: bool = True
    has_queue: bool = True
    module: str = ""


# Current kube-schedulers, which share one engine: each minor version, and the release whose decisions are recorded for
# it. The oldest comes first.
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
# The version if none is requested and the cluster has none, as in a line of ``batch``.
DEFAULT_VERSION = "1.36"
LATEST_VERSION = list(RELEASES)[-1]
PREFIX = "kube-"
DEFAULT_ALGORITHM = f"{PREFIX}{DEFAULT_VERSION}"
LATEST_ALGORITHM = f"{PREFIX}{LATEST_VERSION}"
# Schedulers that share one engine; releases are accepted as well (``kube-1.34.1``).
KUBE_ALGORITHMS = tuple(f"{PREFIX}{minor}" for minor in RELEASES)
# All of them, as written in option help.
KUBE_RANGE = f"{KUBE_ALGORITHMS[0]}...{LATEST_VERSION}"

# How the default scheduler differs from the old ones; the other current versions share this.
KUBE_ROW = SchedulerRow(
    f"v{RELEASES[DEFAULT_VERSION]}",
    (
        "The default. preemptionPolicy Never always applies.",
        "The pod waits only for victims with the condition DisruptionTarget, and only if preemption can help.",
        "Every budget of a victim is counted; pods in disruptedPods are skipped.",
        "Victims are sorted by importance again, so the first victim has the highest priority.",
        "Nodes without lower-priority pods are skipped, and so are candidates without victims.",
        "On large clusters the search stops at enough candidates; the answer shows the odds.",
        "Nodes that fit are scored; the full KubeSchedulerConfiguration applies.",
    ),
)
LEGACY_ROWS: Mapping[str, SchedulerRow] = {
    "kube-1.8": SchedulerRow(
        "v1.8.15",
        (
            "Every predicate runs and every reason is reported. Eight failures exclude a node from preemption.",
            "PodDisruptionBudgets are ignored.",
            "The nominated node is an annotation and reserves nothing: other pods may take the victims' resources.",
            "Victims are ordered by priority only. Nodes by highest victim, sum and number of victims; then any.",
            "Extenders are called for the chosen node without its victims; if one rejects it, the next best follows.",
            "Host ports conflict by number only. Different pods may satisfy different pod affinity terms.",
            "The feature gate PodPriority is assumed on. It was off by default, so nothing was preempted.",
        ),
        choice_rules=3,
        reads_budgets=False,
        module="v1_8",
    ),
    "kube-1.13": SchedulerRow(
        "v1.13.12",
        (
            "The first predicate that fails decides. Sixteen failures exclude a node from preemption.",
            "A victim violates a budget that allows no disruptions now; one allowed disruption covers any number.",
            "Pods that would violate a budget are reprieved first, and come first among the victims.",
            "The nominated node is in the status. Nominated pods of equal or higher priority count on their node.",
            "Nodes by PDB violations, the first victim's priority (not the highest), sum and number; then any.",
            "Extenders with a preempt verb change the candidates before the choice.",
            "Lower-priority pods lose their nomination to the chosen node; the pod loses its own if no node helps.",
        ),
        choice_rules=4,
        module="v1_13",
    ),
    "kube-1.18": SchedulerRow(
        "v1.18.19",
        (
            "Filter plugins; the first that fails decides. UnschedulableAndUnresolvable excludes the node.",
            "preemptionPolicy Never applies only with the gate NonPreemptingPriority, which is off by default.",
            "Among pods of equal priority, the one that started earlier is more important.",
            "Budgets are counted: each victim uses a disruption of its budgets, up to the first with none left.",
            "One more rule for the node: the latest start among its highest victims.",
            "Topology spread is a filter; init containers and overhead of running pods count.",
            "Victims waiting at Permit are rejected; lower-priority pods lose their nomination to the chosen node.",
        ),
        has_queue=False,
        module="v1_18.version",
    ),
}
# Runs sessions on all jobs instead of deciding on a pod (``analysis.volcano``).
VOLCANO = "volcano-1.8"
# Runs cycles on Workloads (``analysis.kueue``).
KUEUE = "kueue-0.19"
OTHER_ROWS: Mapping[str, SchedulerRow] = {
    VOLCANO: SchedulerRow(
        "v1.8.0",
        (
            "Schedules all jobs at once, in a session of actions; a gang is placed completely or not at all.",
            "By default nothing is evicted, because the actions include neither preempt nor reclaim.",
            "PodDisruptionBudgets are ignored. Plugins vote on victims, tier by tier.",
            "preempt evicts within a queue, and rolls back if the gang cannot be placed.",
            "reclaim evicts at once, across queues, from queues above their deserved share.",
            "A pipelined placement lasts one session; other pods may take it in the next.",
            "For explain, batch and compare; kpreempt volcano runs a full session.",
        ),
        project="Volcano",
        reads_budgets=False,
        has_queue=False,
    ),
    KUEUE: SchedulerRow(
        "v0.19.2",
        (
            "Admits Workloads to the quota of a ClusterQueue and its cohorts, before any pod exists.",
            "PodDisruptionBudgets are ignored. Preempted Workloads are suspended as a unit.",
            "Preempts within a ClusterQueue by priority; in a cohort to reclaim quota, or by Fair Sharing.",
            "Nodes only matter for flavors with a topology.",
            "For explain and batch.",
        ),
        project="Kueue",
        reads_budgets=False,
        has_queue=False,
    ),
}
# The schedulers that decide on a pod, and all schedulers.
ALGORITHMS = (*LEGACY_ROWS, *KUBE_ALGORITHMS)
ALL_ALGORITHMS = (*ALGORITHMS, *OTHER_ROWS)


def row_of(algorithm: str) -> SchedulerRow:
    """Return the row of an algorithm; all current releases share one."""
    return LEGACY_ROWS.get(algorithm) or OTHER_ROWS.get(algorithm) or KUBE_ROW


# Schedulers whose queue is modeled.
QUEUE_ALGORITHMS = tuple(each for each in ALGORITHMS if row_of(each).has_queue)
