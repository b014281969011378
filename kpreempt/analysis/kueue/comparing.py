"""Several configurations of Kueue, or of its queues, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime

from kpreempt.analysis.kueue.pending import IsAsked, is_same_fate, pending_workloads
from kpreempt.schedulers.kueue import KueueConfiguration, KueueObjects
from kpreempt.verdict import Assumption
from kpreempt.verdict.kueue import ComparedWorkload, KueueComparison, PendingWorkload


def compare_configurations(
    compared: Mapping[str, tuple[KueueObjects, KueueConfiguration]],
    *,
    now: datetime,
    is_asked: IsAsked,
    assumptions: Sequence[Assumption] = (),
) -> KueueComparison:
    """What becomes of the Workloads that wait, of which one ``is_asked``, by the name of a configuration.

    They come in the order of the first configuration.
    """
    found = {name: pending_workloads(*each, now=now, is_asked=is_asked) for name, each in compared.items()}
    by_key = [{item.workload: item for item in each.items} for each in found.values()]
    items = [_compared([items[key] for items in by_key]) for key in by_key[0]]
    said = [assumption for each in found.values() for assumption in each.assumptions]
    return KueueComparison(
        names=list(compared),
        items=items,
        differing=sum(not each.is_same for each in items),
        assumptions=list(dict.fromkeys([*said, *assumptions])),
    )


def _compared(items: list[PendingWorkload]) -> ComparedWorkload:
    first, *others = items
    is_certain = not any(each.others for each in items)
    return ComparedWorkload(
        workload=first.workload,
        cluster_queue=first.cluster_queue,
        priority=first.priority,
        is_same=is_certain and all(is_same_fate(first.fate, each.fate) for each in others),
        fates=[each.fate for each in items],
    )
