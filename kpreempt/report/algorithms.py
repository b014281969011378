"""The schedulers that can be asked, in words: what each does differently from the others."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

import msgspec

from kpreempt.report.amounts import count
from kpreempt.report.options import RenderOptions

_INDENT = "  - "


class Algorithms(msgspec.Struct, frozen=True, rename="camel"):
    """All of them."""

    items: list[Algorithm]


class Algorithm(msgspec.Struct, frozen=True, rename="camel"):
    """A scheduler by the name that ``--algorithm`` takes, the release of its project that it follows, and its ways."""

    name: str
    release: str
    differences: list[str]
    project: str = "Kubernetes"


_ALGORITHMS = (
    Algorithm(
        "kube-1.8",
        "v1.8.15",
        [
            "Every predicate runs and every reason is reported. Eight failures exclude a node from preemption.",
            "PodDisruptionBudgets are ignored.",
            "The nominated node is an annotation and reserves nothing: other pods may take what the victims leave.",
            "Victims by priority alone. The node by highest victim, sum and number of victims; then any.",
            "Extenders are called for the chosen node without its victims; where one refuses, the next best follows.",
            "Host ports conflict by number alone. Each pod affinity term may be met by a different pod.",
            "The feature gate PodPriority is assumed on. By default it was off, and nothing was preempted.",
        ],
    ),
    Algorithm(
        "kube-1.13",
        "v1.13.12",
        [
            "The first predicate that fails decides. Sixteen failures exclude a node from preemption.",
            "A victim violates a budget that allows no disruption now. Nothing is counted: one allowed covers many.",
            "Pods that would violate a budget are reprieved first, and come first among the victims.",
            "The nominated node is in the status. Nominated pods of equal or higher priority count on their node.",
            "The node by PDB violations, the first victim's priority (not the highest), sum and number; then any.",
            "Extenders with a preempt verb change the candidates before the choice.",
            "Lower-priority pods lose their nomination to the chosen node; the pod its own where no node helps.",
        ],
    ),
    Algorithm(
        "kube-1.18",
        "v1.18.19",
        [
            "Filter plugins; the first that fails decides. UnschedulableAndUnresolvable excludes the node.",
            "preemptionPolicy Never counts only with the gate NonPreemptingPriority, which is off by default.",
            "Of equal priority, the pod that started earlier is more important.",
            "Budgets are counted: each victim uses a disruption of its budgets, until the first that has none left.",
            "One more rule for the node: the latest start among its highest victims.",
            "Topology spread is a filter; init containers and overhead count for running pods.",
            "Victims waiting at Permit are rejected; lower-priority pods lose their nomination to the chosen node.",
        ],
    ),
    # The kube-schedulers of one engine, which are handed in; this is said of the usual one.
    Algorithm(
        "",
        "",
        [
            "The default. preemptionPolicy Never always counts.",
            "The pod waits only for victims with the condition DisruptionTarget, and not where preemption cannot help.",
            "Every budget of a victim is counted; pods in disruptedPods are skipped.",
            "Victims are sorted by importance again, so the rule of the highest victim is about the highest.",
            "Nodes without lower-priority pods are skipped, and so are candidates without victims.",
            "On big clusters the search stops at enough candidates: the answer has the odds.",
            "Nodes that fit are scored; the whole KubeSchedulerConfiguration counts.",
        ],
    ),
    Algorithm(
        "volcano-1.8",
        "v1.8.0",
        [
            "Schedules all jobs at once, in a session of actions; a gang is placed whole or not at all.",
            "By default nothing is evicted: neither preempt nor reclaim is among the actions.",
            "PodDisruptionBudgets are ignored. Plugins vote on victims, tier by tier.",
            "preempt evicts within a queue, and rolls back where the gang cannot be placed.",
            "reclaim evicts across queues, at once, from those above their deserved share.",
            "A pipelined placement lasts one session: in the next one others may take it.",
            "For explain, batch and compare; kpreempt volcano runs a whole session.",
        ],
        project="Volcano",
    ),
    Algorithm(
        "kueue-0.19",
        "v0.19.2",
        [
            "Gives whole Workloads quota of a ClusterQueue and its cohorts, before any pod is there.",
            "PodDisruptionBudgets are ignored. Whole Workloads are preempted: their jobs are suspended.",
            "Within a ClusterQueue by priority; across a cohort to reclaim quota, or by Fair Sharing.",
            "Nodes are looked at for flavors with a topology alone.",
            "For explain and batch.",
        ],
        project="Kueue",
    ),
)


def algorithms_with(newest: str, kube: Sequence[tuple[str, str, Sequence[str], int]]) -> Algorithms:
    """All of them, with those of ``kube``: name, release, and what it decides otherwise than the one before.

    Of changes that alter no decision there is the number.
    ``newest`` is the one that is asked where none is named.
    """
    items: list[Algorithm] = []
    for each in _ALGORITHMS:
        if each.name:
            items.append(each)
            continue
        for number, (name, release, changes, others) in enumerate(kube):
            own = each.differences if name == newest else []
            items.append(Algorithm(name, release, [*own, *(_new(changes, others) if number else [_oldest(newest)])]))
    return Algorithms(items)


def _oldest(newest: str) -> str:
    return f"As {newest}, without what has changed since: each of those below tells what it decides otherwise."


def _new(changes: Sequence[str], others: int) -> list[str]:
    """What is new in a version; the changes that alter no decision are in ``docs/versions.md``."""
    rest = f"{count(others, 'change')} of words, the queue, configurations and other things: docs/versions.md."
    return [*(changes or ["Nothing that is modelled decides otherwise."]), *([rest] if others else [])]


def render_algorithms(algorithms: Algorithms, options: RenderOptions) -> str:
    """All of them, in words."""
    return "\n".join(_text(each, options.width) for each in algorithms.items)


def _text(algorithm: Algorithm, width: int) -> str:
    lines = [f"{algorithm.name} ({algorithm.project} {algorithm.release})"]
    for difference in algorithm.differences:
        lines += textwrap.wrap(difference, width, initial_indent=_INDENT, subsequent_indent=" " * len(_INDENT))
    return "".join(f"{line}\n" for line in lines)
