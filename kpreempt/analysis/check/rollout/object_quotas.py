"""Quotas that count other objects than pods, and storage: whether those of a change are too many for them.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/quota/v1/evaluator/core/persistent_volume_claims.go`` for claims. The
objects are simulated all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import msgspec

from kpreempt.admission.pod_resources import format_nano
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, POD_OWNERS, plural_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.quantity import NANO_PER_UNIT
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.schedulers.kube.framework.volumes import class_of_claim, requested_storage
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.check import Change, ChangeKind

# What controllers make of an object beside pods.
_MADE = {"Deployment": "count/replicasets.apps", "CronJob": "count/jobs.batch"}
_CLAIM = "PersistentVolumeClaim"
_STORAGE, _CLAIMS = "requests.storage", "persistentvolumeclaims"
_OF_CLASS = ".storageclass.storage.k8s.io/"
# How much of what quotas of a namespace count, in billionths, by the namespace and the quotas' name for it.
_Amounts = Counter[tuple[str, str]]


class Exceeded(msgspec.Struct, frozen=True):
    """What each quota (``shop/compute``) has too little room for, in words, and where that is not certain."""

    quotas: dict[str, str] = {}
    assumptions: list[Assumption] = []


def exceeded_quotas(changes: Iterable[Change], cluster: ClusterSnapshot, new_claims: Iterable[str]) -> Exceeded:
    """The quotas that what the change makes exceeds; ``new_claims`` are the keys of its claims in ``cluster``."""
    if not cluster.resource_quotas:
        return Exceeded()
    new = set(new_claims)
    made: _Amounts = Counter()
    guessed: _Amounts = Counter()
    there: _Amounts = Counter()
    for change in changes:
        kind, _, key = change.object.partition(" ")
        namespace = key.partition("/")[0]
        if change.kind is ChangeKind.CREATED and kind != _CLAIM:
            made.update({(namespace, name): NANO_PER_UNIT for name in _names_of(kind)})
        if change.kind in (ChangeKind.CREATED, ChangeKind.ROLLED) and kind in _MADE:
            guessed[namespace, _MADE[kind]] += NANO_PER_UNIT
    for claim in cluster.persistent_volume_claims:
        (made if claim.key in new else there).update(_usage_of(claim))
    quotas: dict[str, list[str]] = {}
    assumptions = []
    for quota in cluster.resource_quotas:
        namespace = quota.metadata.namespace
        for name, limit in quota.limits.items():
            what = (namespace, name)
            used = quota.status.used[name].nano if name in quota.status.used else there[what]
            total = used + made[what] + guessed[what]
            if not (made[what] or guessed[what]) or total <= limit.nano:
                continue
            words = f"{name} {format_nano(total, binary=limit.text.endswith('i'))} of {limit}"
            if used + made[what] > limit.nano:
                quotas.setdefault(quota.key, []).append(words)
            else:
                message = f"{words}, with what controllers make of the change; what is refused counts as made"
                subject = f"ResourceQuota {quota.key}"
                assumptions.append(Assumption(subject, f"spec.hard.{name}", message, AssumptionKind.UNCERTAIN))
    return Exceeded({key: ", ".join(words) for key, words in quotas.items()}, assumptions)


def _usage_of(claim: PersistentVolumeClaim) -> dict[tuple[str, str], int]:
    """What a claim takes of quotas."""
    own = {_CLAIMS: NANO_PER_UNIT, _STORAGE: requested_storage(claim).nano}
    usage = {**own, f"count/{_CLAIMS}": NANO_PER_UNIT}
    if name := class_of_claim(claim):
        usage |= {f"{name}{_OF_CLASS}{each}": amount for each, amount in own.items()}
    return {(claim.metadata.namespace, each): amount for each, amount in usage.items()}


def _names_of(kind: str) -> list[str]:
    """The names under which quotas count objects of a kind."""
    plural = plural_of(kind)
    known = CLUSTER_KINDS.get(kind)
    group = POD_OWNERS[kind][0] if kind in POD_OWNERS else known.groups[0] if known else ""
    names = [f"count/{plural}.{group}" if group else f"count/{plural}"]
    if not group:
        names.append(plural)
    return names
