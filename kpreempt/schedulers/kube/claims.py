"""Where resource claims make an answer uncertain.

Allocating devices is not modelled. What can be said without it is said, and the claims are named as assumptions.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.resources import pod_requests
from kpreempt.schedulers.kube.versions import Behaviour
from kpreempt.verdict import Assumption, Candidate


def claims_of(pod: Pod) -> list[str]:
    """The pod's claims by name; one that is made from a template, and not yet known, by its reference in the pod."""
    generated = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    return [claim.resource_claim_name or generated.get(claim.name) or claim.name for claim in pod.spec.resource_claims]


def claim_assumptions(
    pod: Pod, candidates: Iterable[Candidate], cluster: ClusterState, behaviour: Behaviour
) -> list[Assumption]:
    """One assumption per use of devices that could change the answer: by the pod itself, or by a possible victim."""
    if not behaviour.dynamic_resource_allocation:
        return []
    assumptions = []
    own = claims_of(pod)
    if own:
        assumptions.append(_assumption(pod, own, "whether its devices can be allocated on a node is not computed"))
    backed = sorted(set(pod_requests(pod)) & cluster.extended_resources_of_device_classes)
    if backed and behaviour.dra_extended_resource:
        assumptions.append(
            Assumption(
                f"Pod {pod.key}",
                "spec.containers[].resources.requests",
                f"{', '.join(backed)} can be satisfied by allocating devices of a DeviceClass, which is not computed",
            )
        )
    assumptions += _assumptions_about_victims(pod, candidates, cluster)
    return assumptions


def _assumptions_about_victims(pod: Pod, candidates: Iterable[Candidate], cluster: ClusterState) -> list[Assumption]:
    nodes = {candidate.node for candidate in candidates}
    if not nodes:
        # A look at all pods is saved.
        return []
    return [
        _assumption(
            victim,
            claims_of(victim),
            f"its eviction from {victim.spec.node_name} would free devices, which is not computed",
        )
        for victim in cluster.pods_with_resource_claims
        if victim.spec.node_name in nodes and victim.priority < pod.priority
    ]


def _assumption(pod: Pod, claims: list[str], effect: str) -> Assumption:
    noun = "claim" if len(claims) == 1 else "claims"
    return Assumption(
        f"Pod {pod.key}", "spec.resourceClaims", f"it uses the resource {noun} {', '.join(claims)}; {effect}"
    )
