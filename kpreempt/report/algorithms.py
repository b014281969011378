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
            "Every predicate runs, and all reasons are known. Eight failures rule a node out.",
            "Disruption budgets are not asked.",
            "The nominated node is an annotation. It keeps no room: other pods may take what the victims leave.",
            "Victims by priority alone. The node by its highest victim, the sum, the number of victims; then any.",
            "Extenders are asked about the chosen node without its victims; where one refuses, the next best follows.",
            "Host ports conflict by number alone. Each term of pod affinity may be met by another pod.",
            "The gate PodPriority is taken to be on. By default it was off, and nobody was preempted.",
        ],
    ),
    Algorithm(
        "kube-1.13",
        "v1.13.12",
        [
            "The first predicate that fails decides. Sixteen failures rule a node out.",
            "Budgets: an eviction violates one that allows none now. Nothing is counted: one allowed covers many.",
            "Pods that would violate a budget are put back first, and stand first among the victims.",
            "The nominated node is in the status. Nominated pods of equal or higher priority keep their room.",
            "The node by violations, the first victim's priority (not the highest), the sum, the number; then any.",
            "Extenders with a preempt verb change the candidates before the choice.",
            "Lower pods lose their nomination to the chosen node; the pod its own, where no node is worth a try.",
        ],
    ),
    Algorithm(
        "kube-1.18",
        "v1.18.19",
        [
            "Filter plugins; the first that fails decides, and rules the node out with UnschedulableAndUnresolvable.",
            "preemptionPolicy Never counts only with the gate NonPreemptingPriority, which is off by default.",
            "Of equal priority, the pod that started earlier is more important.",
            "Budgets are counted: each victim takes from its budgets, until the first that has none left.",
            "One more rule for the node: the latest start among its highest victims.",
            "Topology spread is a filter; init containers and overhead count for running pods.",
            "Waiting victims are rejected; lower pods lose their nomination to the chosen node.",
        ],
    ),
    # The kube-schedulers of one engine, which are handed in; this is said of the usual one.
    Algorithm(
        "",
        "",
        [
            "The default. preemptionPolicy Never always counts.",
            "The pod waits only for victims that carry the condition DisruptionTarget, and not for a hopeless node.",
            "Budgets: every one of a victim is counted, and pods that they know as disrupted already are passed over.",
            "Victims are sorted by importance again, so that the rule of the highest victim is about the highest.",
            "Nodes without pods of lower priority are left out, and so are candidates without victims.",
            "On big clusters the search ends with enough candidates: the odds are part of the answer.",
            "Nodes that fit are scored; the whole KubeSchedulerConfiguration counts.",
        ],
    ),
    Algorithm(
        "volcano-1.8",
        "v1.8.0",
        [
            "Decides about all jobs at once, in a session of actions; a gang is placed whole or not at all.",
            "By default nobody is evicted: neither preempt nor reclaim is among the actions.",
            "Disruption budgets are not asked. Plugins vote on victims, tier by tier.",
            "preempt evicts within a queue, and takes it back where the gang does not come together.",
            "reclaim evicts across queues, at once, from those that hold more than they deserve.",
            "Room that is promised lasts one session: in the next one others may take it.",
            "For explain, batch and compare; kpreempt volcano runs a whole session.",
        ],
        project="Volcano",
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
