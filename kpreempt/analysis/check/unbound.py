"""What the gate has to say about claims of a change to which nothing can be bound."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from kpreempt.analysis.check.gate import Objection
from kpreempt.analysis.simulation.claims import claims_of_pod
from kpreempt.analysis.simulation.workloads import Workloads
from kpreempt.gate_rules import RuleId
from kpreempt.model.cluster import ClusterSnapshot


class UnboundClaims(NamedTuple):
    """Why pods of workloads wait for their claims, and objections to claims for which no pod waits."""

    workloads: dict[str, str]
    objections: list[Objection]


def unbound_claims(after: ClusterSnapshot, unbound: Mapping[str, str], waiting: Mapping[str, str]) -> UnboundClaims:
    """The reasons by workload; ``waiting`` claims, which are bound with a pod, count only where one waits for them."""
    reasons = {**unbound, **waiting}
    found: dict[str, str] = {}
    told: set[str] = set()
    names = Workloads(after)
    for pod in after.pods if reasons else ():
        if pod.spec.node_name:
            continue
        for key in claims_of_pod(pod):
            if key in reasons:
                told.add(key)
                found.setdefault(names.of(pod), f"PersistentVolumeClaim {key}: {reasons[key]}")
    objections = [
        Objection(RuleId.REQUIRE_SCHEDULABLE, f"PersistentVolumeClaim {key}", reason)
        for key, reason in unbound.items()
        if key not in told
    ]
    return UnboundClaims(found, objections)
