"""The number of Kueue's Workloads, for ``pending`` in a cluster with Kueue: its pods wait for their Workloads first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from kpreempt.analysis.kueue.objects import KUEUE_EXTRAS
from kpreempt.library.reading import LoadedCluster
from kpreempt.model.extra_fields import ExtraFields
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.pending import PendingPods, WorkloadCounts

# The kind to read; if the server or the input has none, there is nothing to count.
WORKLOADS = ExtraFields(tuple(kind for kind in KUEUE_EXTRAS.kinds if kind.kind == "Workload"))
(_KIND,) = WORKLOADS.kinds


def with_optional_workloads(loaded: LoadedCluster) -> LoadedCluster:
    """Let nothing depend on Workloads: that they are not in a snapshot matters not, and a missing permission little."""
    assumptions = []
    for each in loaded.assumptions:
        if each.subject != _KIND.key:
            assumptions.append(each)
        elif each.kind is AssumptionKind.UNREADABLE:
            assumptions.append(msgspec.structs.replace(each, kind=AssumptionKind.INFORMATIONAL))
    return msgspec.structs.replace(loaded, assumptions=assumptions)


def with_workload_counts(pending: PendingPods, loaded: LoadedCluster) -> PendingPods:
    """Add the numbers of pending and admitted Workloads in the requested namespace, if there are any."""
    documents = loaded.cluster.documents.get(_KIND.key, ())
    if pending.namespace:
        documents = [each for each in documents if each["metadata"].get("namespace") == pending.namespace]
    active = [each for each in documents if not _has_condition(each, "Finished")]
    if not active:
        return pending
    admitted = sum(_has_condition(each, "Admitted") for each in active)
    return msgspec.structs.replace(pending, workloads=WorkloadCounts(len(active) - admitted, admitted))


def _has_condition(workload: Mapping[str, Any], condition: str) -> bool:
    status = workload.get("status")
    conditions = status.get("conditions") if isinstance(status, dict) else None
    return any(
        isinstance(each, dict) and each.get("type") == condition and each.get("status") == "True"
        for each in (conditions if isinstance(conditions, list) else ())
    )
