"""Fields of a new pod that the API server of a version drops, as their feature gate is off, or not there yet.

Follows ``dropDisabledFields`` in ``k8s.io/kubernetes`` v1.36.3 ``pkg/api/pod/util.go``, of which there are those fields
here that decide where a pod goes. Others that schedulers know are left to them (``schedulers/kube/dormant_gates.py``).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kpreempt.admission.records import Admission
from kpreempt.admission.rules import ApiServerRules
from kpreempt.model.affinity import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption

_Rules = TypeVar("_Rules", PodAffinity, PodAntiAffinity)


def drop_disabled_fields(pod: Pod, rules: ApiServerRules) -> Admission:
    """The pod without the fields that the API server drops, each with an assumption: a gate may be on after all."""
    spec = pod.spec
    assumptions: list[Assumption] = []
    if not rules.pod_level_resources and spec.resources is not None:
        spec = msgspec.structs.replace(spec, resources=None)
        effect = "what the pod requests as a whole takes the place of what its containers do"
        assumptions.append(_dropped(pod, "spec.resources", "PodLevelResources", effect))
    if not rules.match_label_keys_in_pod_affinity and (affinity := _without_keys(spec.affinity)) != spec.affinity:
        spec = msgspec.structs.replace(spec, affinity=affinity)
        effect = "they narrow the pods that its affinity is about to those with the same labels, or with others"
        field = "spec.affinity[].matchLabelKeys"
        assumptions.append(_dropped(pod, field, "MatchLabelKeysInPodAffinity", effect))
    constraints = spec.topology_spread_constraints
    if not rules.match_label_keys_in_pod_topology_spread and any(each.match_label_keys for each in constraints):
        constraints = [msgspec.structs.replace(each, match_label_keys=[]) for each in constraints]
        spec = msgspec.structs.replace(spec, topology_spread_constraints=constraints)
        effect = "they narrow the pods that are counted to those with the same labels"
        field = "spec.topologySpreadConstraints[].matchLabelKeys"
        assumptions.append(_dropped(pod, field, "MatchLabelKeysInPodTopologySpread", effect))
    if spec is pod.spec:
        return Admission(pod)
    return Admission(msgspec.structs.replace(pod, spec=spec), assumptions=assumptions)


def _dropped(pod: Pod, field: str, gate: str, effect: str) -> Assumption:
    message = (
        f"dropped by the API server, whose feature gate {gate} is assumed to be off, as by default in this version,"
        f" or is not there yet; where it is on, {effect}"
    )
    return Assumption(f"Pod {pod.key}", field, message)


def _without_keys(affinity: Affinity | None) -> Affinity | None:
    if affinity is None:
        return None
    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return msgspec.structs.replace(
        affinity, pod_affinity=_stripped(near) if near else None, pod_anti_affinity=_stripped(far) if far else None
    )


def _stripped(rules: _Rules) -> _Rules:
    preferred = [
        msgspec.structs.replace(each, pod_affinity_term=_term(each.pod_affinity_term)) for each in rules.preferred
    ]
    return msgspec.structs.replace(rules, required=[_term(each) for each in rules.required], preferred=preferred)


def _term(term: PodAffinityTerm) -> PodAffinityTerm:
    return msgspec.structs.replace(term, match_label_keys=[], mismatch_label_keys=[])
