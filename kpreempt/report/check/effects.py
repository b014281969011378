"""What the change itself does: the simulation without what also happens without the change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TypeVar

import msgspec

from kpreempt.report.amounts import agree, count
from kpreempt.verdict.check import Check
from kpreempt.verdict.headroom import without_headroom
from kpreempt.verdict.simulation import Simulation, SimulationEnd, UnscheduledPod

_Item = TypeVar("_Item")


def effect_of(check: Check) -> Simulation:
    """The simulation with only the harm that does not happen without the change under the same draws."""
    found = without_headroom(check.simulation, {each.workload for each in check.headroom})
    anyway = check.without_change
    if anyway is None:
        return found
    violations = {each.budget: each.violations for each in anyway.budgets}
    ready = {each.workload: (each.ready_min, each.ready_after) for each in anyway.workloads}
    return msgspec.structs.replace(
        found,
        end=SimulationEnd.SETTLED if found.end is anyway.end else found.end,
        displaced=_without(found.displaced, anyway.displaced, lambda each: (each.pod, each.lost)),
        pending=_without(found.pending, anyway.pending, _waiting),
        budgets=[
            msgspec.structs.replace(each, violations=max(each.violations - violations.get(each.budget, 0), 0))
            for each in found.budgets
        ],
        workloads=[
            each
            for each in found.workloads
            if each.is_changed or ready.get(each.workload) != (each.ready_min, each.ready_after)
        ],
        broken_dependencies=_without(
            found.broken_dependencies, anyway.broken_dependencies, lambda each: (each.kind, each.subject, each.node)
        ),
        rejected=_without(found.rejected, anyway.rejected, lambda each: (each.workload, each.quota, each.pods)),
    )


def anyway_text(check: Check) -> str:
    """``pending pods evict 4 pods``: what happens without the change, or an empty string."""
    anyway = check.without_change
    if anyway is None:
        return ""
    words = []
    if evicted := len(anyway.displaced):
        words.append(f"pending pods evict {count(evicted, 'pod')}")
    if violations := sum(each.violations for each in anyway.budgets):
        words.append(f"violate budgets {count(violations, 'time')}" if evicted else count(violations, "violation"))
    if left := sum(each.pending_before for each in anyway.pending):
        words.append(f"{count(left, 'pending pod')} {agree(left, 'stays')} pending")
    if anyway.end is SimulationEnd.LOOP:
        words.append("pods keep preempting one another")
    return f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else "".join(words)


def _waiting(pod: UnscheduledPod) -> Hashable:
    # Pods that are created during the simulation have names that it chooses.
    return pod.workload or pod.pod, pod.was_running, pod.pending_before


def _without(items: Sequence[_Item], others: Iterable[_Item], key: Callable[[_Item], Hashable]) -> list[_Item]:
    """The items without as many of each key as there are among the others."""
    left = Counter(map(key, others))
    found = []
    for each in items:
        if left[key(each)]:
            left[key(each)] -= 1
        else:
            found.append(each)
    return found
