"""Feature gates that are off, in most cases by default: warn if the input uses the fields that they control."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.model.pod import RESIZE_PENDING, Pod
from kpreempt.schedulers.kube.versions import Behavior, known_gates
from kpreempt.verdict import Assumption, AssumptionKind

_GROUPS = "GenericWorkload"
_RESIZES = "InPlacePodVerticalScalingSchedulerPreemption"
_LABEL_KEYS = "MatchLabelKeysInPodAffinity"
_COMPARING = frozenset({"Lt", "Gt"})


def assume_of_pod(pod: Pod, behavior: Behavior) -> list[Assumption]:
    """List assumptions about the requested pod: that no gate controlling one of its fields is enabled."""
    spec = pod.spec
    off: list[tuple[object, str, str, str]] = [
        (
            _group_field(pod),
            _group_field(pod),
            _GROUPS,
            "the pods of its group are scheduled together, not one by one",
        ),
        (
            spec.resource_claims and not behavior.dynamic_resource_allocation,
            "spec.resourceClaims",
            "DynamicResourceAllocation",
            "the pod's devices must be allocated on the node, which is not modeled",
        ),
        (
            spec.resources is not None and not behavior.pod_level_resources,
            "spec.resources",
            "PodLevelResources",
            "pod-level requests replace the sum of the containers' requests",
        ),
        (
            not behavior.taint_toleration_comparison_operators
            and any(each.operator in _COMPARING for each in spec.tolerations),
            "spec.tolerations[].operator",
            "TaintTolerationComparisonOperators",
            "they tolerate taints by comparing numbers; here they tolerate nothing",
        ),
    ]
    found = [
        Assumption(f"Pod {pod.key}", field, _message(gate, effect, behavior))
        for is_used, field, gate, effect in off
        if is_used
    ]
    terms = spec.affinity.pod_terms if spec.affinity is not None else ()
    if not behavior.match_label_keys_in_pod_affinity and any(
        term.match_label_keys or term.mismatch_label_keys for term in terms
    ):
        why = "set to off" if known_gates(behavior.version)[_LABEL_KEYS].default else "off by default"
        message = (
            f"the feature gate {_LABEL_KEYS}, which is {why}, is assumed to be on: if it is off, the API server drops"
            " these keys"
        )
        found.append(Assumption(f"Pod {pod.key}", "spec.affinity[].matchLabelKeys", message))
    return found


def assume_of_pods(pods: Iterable[Pod], behavior: Behavior) -> list[Assumption]:
    """List assumptions about all pods of a cluster: that they are scheduled and evicted one by one, the default."""
    gates = known_gates(behavior.version)
    grouped: dict[str, list[str]] = {}
    deferred: list[str] = []
    may_resize = _RESIZES in gates
    for pod in pods:
        spec, conditions = pod.spec, pod.status.conditions
        if spec.scheduling_group is not None or spec.workload_ref is not None:
            grouped.setdefault(_group_field(pod), []).append(pod.key)
        if not conditions or not may_resize or not spec.node_name:
            continue
        if any(
            each.reason == "Deferred" and each.type == RESIZE_PENDING and each.status == "True" for each in conditions
        ):
            deferred.append(pod.key)
    found = [
        Assumption(_counted(keys), field, _message(_GROUPS, "they are scheduled and evicted as groups", behavior))
        for field, keys in grouped.items()
    ]
    if deferred:
        effect = "they are retried for the resources they lack, and may evict other pods"
        message = _message(_RESIZES, effect, behavior)
        # Nothing shows whether the gate is on: a kubelet defers a resize without it, too.
        found.append(Assumption(_counted(deferred), "status.conditions", message, AssumptionKind.INFORMATIONAL))
    return found


def _group_field(pod: Pod) -> str:
    if pod.spec.scheduling_group is not None:
        return "spec.schedulingGroup"
    return "spec.workloadRef" if pod.spec.workload_ref is not None else ""


def _message(gate: str, effect: str, behavior: Behavior) -> str:
    known = known_gates(behavior.version).get(gate)
    if known is None:
        return f"kube-scheduler {behavior.version} does not have the feature gate {gate}; where it is on, {effect}"
    how = "set to off" if known.default else "assumed to be off, the default"
    return f"the feature gate {gate} is {how}; if it is on, {effect}"


def _counted(keys: Sequence[str]) -> str:
    first = min(keys)
    return f"Pod {first}" if len(keys) == 1 else f"Pods {first} and {len(keys) - 1:,} more"
