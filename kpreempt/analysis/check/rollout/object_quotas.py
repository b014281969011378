"""Quotas that count other objects than pods: whether those of a change may be too many for them.

They are not simulated: where one may be exceeded, that is an assumption, which names the quota and the numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, POD_OWNERS, plural_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.quantity import NANO_PER_UNIT
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind

# What controllers make of an object beside pods.
_MADE = {"Deployment": "count/replicasets.apps", "CronJob": "count/jobs.batch"}
_STORAGE = "requests.storage"


def exceeded_counts(changes: Iterable[Change], cluster: ClusterSnapshot) -> Iterator[Assumption]:
    """An assumption for each quota that counts what the change makes, and may not have room for it."""
    if not cluster.resource_quotas:
        return
    made: Counter[tuple[str, str]] = Counter()
    for change in changes:
        kind, _, key = change.object.partition(" ")
        namespace = key.partition("/")[0]
        if change.kind is ChangeKind.CREATED:
            made.update((namespace, name) for name in _names_of(kind))
        if change.kind in (ChangeKind.CREATED, ChangeKind.ROLLED) and kind in _MADE:
            made[namespace, _MADE[kind]] += 1
    for quota in cluster.resource_quotas:
        namespace = quota.metadata.namespace
        for name, limit in quota.limits.items():
            number = made[namespace, name]
            used = quota.status.used[name].nano // NANO_PER_UNIT if name in quota.status.used else 0
            most = limit.nano // NANO_PER_UNIT
            # How much a claim asks for is not added up.
            if number and (used + number > most or name == _STORAGE):
                message = (
                    f"the change makes {number:,} of what it counts, {used:,} of {most:,} are used; what is refused "
                    "counts as made"
                )
                yield Assumption(f"ResourceQuota {namespace}/{quota.metadata.name}", f"spec.hard.{name}", message)


def _names_of(kind: str) -> list[str]:
    """The names under which quotas count objects of a kind."""
    plural = plural_of(kind)
    known = CLUSTER_KINDS.get(kind)
    group = POD_OWNERS[kind][0] if kind in POD_OWNERS else known.groups[0] if known else ""
    names = [f"count/{plural}.{group}" if group else f"count/{plural}"]
    if not group:
        names.append(plural)
    if kind == "PersistentVolumeClaim":
        names.append(_STORAGE)
    return names
