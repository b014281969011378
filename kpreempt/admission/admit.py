"""Simulate the admission of a new pod, in the API server's order.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/kubeapiserver/options/plugins.go`` (the order, and the plugins enabled by
default); differences between versions are in ``rules``. A cluster's webhooks and admission policies are unknown, and
quotas are not checked here. The steps:

* default tolerations: ``plugin/pkg/admission/defaulttolerationseconds`` (with the API server's default of 300 seconds)
  and ``pkg/util/tolerations``. The memory-pressure toleration comes from a plugin that is off by default
  (PodTolerationRestriction), so it is not added;
* overhead and scheduling of a RuntimeClass: ``plugin/pkg/admission/runtimeclass``;
* fields that the API server of a version drops because their feature gate is off or does not exist yet:
  ``dropDisabledFields`` in ``pkg/api/pod/util.go``, for fields that affect placement. The schedulers handle other
  fields themselves (``schedulers/kube/disabled_gates.py``);
* ``matchLabelKeys`` and ``mismatchLabelKeys``, which become label expressions: ``pkg/registry/core/pod/strategy.go``
  (``mutatePodAffinity`` and ``mutateTopologySpreadConstraints``). The scheduler reads only the selector of an affinity
  term, never its keys.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection
from typing import TypeVar

import msgspec

from kpreempt.admission.api_defaults import admit_api_defaults, admit_pod_level_resources
from kpreempt.admission.pod_resources import round_up_to_milli
from kpreempt.admission.priority import admit_priority
from kpreempt.admission.records import DEFAULT_RULES, Admission, ApiServerRules, rejected
from kpreempt.model.affinity import Affinity, PodAffinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.labels import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, format_requirement
from kpreempt.model.meta import replace_in
from kpreempt.model.pod import Pod
from kpreempt.model.taints import Toleration
from kpreempt.model.workloads import RuntimeClass
from kpreempt.verdict import Assumption, DefaultedField
from kpreempt.verdict.unread import unread_of

# The taints of a failed node, and how long pods tolerate them by default.
NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
DEFAULT_SECONDS = 300

_EVERY_CLUSTER_HAS = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
_RUNTIME_CLASS = "RuntimeClass"
_REASON = "admission plugin DefaultTolerationSeconds"
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

_Rules = TypeVar("_Rules", PodAffinity, PodAntiAffinity)


def admit(pod: Pod, cluster: ClusterSnapshot, rules: ApiServerRules = DEFAULT_RULES) -> Admission:
    """Return the pod as the scheduler would see it if it were created now, the changes, and the assumptions.

    Raises ``NotFoundError`` for an unknown PriorityClass, and ``InputError`` if the API server would reject the pod.
    Pods in the cluster were admitted when they were created; this is for new ones.
    """
    changes: list[DefaultedField] = []
    assumptions: list[Assumption] = []
    name = pod.metadata.namespace
    known = {namespace.metadata.name for namespace in cluster.namespaces}
    if known and name not in known | _EVERY_CLUSTER_HAS and "Namespace" not in cluster.unread:
        message = f'namespace "{name}" is not in the input; without it, the API server rejects the pod'
        assumptions.append(Assumption(subject=f"Pod {pod.key}", field="metadata.namespace", message=message))
    steps = (
        lambda pod: admit_api_defaults(pod, rules),
        lambda pod: _with_limit_ranges(pod, cluster),
        lambda pod: admit_priority(pod, cluster),
        _with_default_tolerations,
        lambda pod: _with_runtime_class(pod, cluster),
        lambda pod: _without_disabled_fields(pod, rules),
        lambda pod: _with_label_keys(pod, rules),
        lambda pod: admit_pod_level_resources(pod, rules),
        lambda pod: _validated(pod, cluster),
        # The stored pod is decoded again before the scheduler sees it, which applies the defaults once more.
        lambda pod: admit_api_defaults(pod, rules),
    )
    for step in steps:
        admission = step(pod)
        pod = admission.pod
        changes += admission.changes
        assumptions += admission.assumptions
    return Admission(pod, changes, assumptions)


def _with_limit_ranges(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    state = state_of(cluster, "LimitRange")
    # Without requests in every container, a default request needs an assumption.
    has_requests = all(each.resources.requests or each.resources.limits for each in pod.spec.containers)
    if not cluster.limit_ranges and (state is KindState.READ or (state is KindState.ABSENT and has_requests)):
        return Admission(pod)
    from kpreempt.admission.limit_ranges import admit_limit_ranges  # noqa: PLC0415 - few clusters have any

    return admit_limit_ranges(pod, cluster)


def _validated(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """Validate the pod after all mutating plugins, and return it unchanged. Raises ``InputError``."""
    if cluster.limit_ranges:
        from kpreempt.admission.limit_ranges import check_limit_ranges  # noqa: PLC0415 - few clusters have any

        check_limit_ranges(pod, cluster)
    name = pod.spec.runtime_class_name
    # If RuntimeClasses were not read, the overhead cannot be validated.
    is_known = pod.spec.overhead and not (name and _may_be_unread(name, cluster))
    if is_known and (not name or _find(pod, cluster).overhead is None):
        reason = "Pod Overhead set without corresponding RuntimeClass defined Overhead"
        raise rejected(pod, reason, path="spec.overhead")
    return Admission(pod)


def _with_default_tolerations(pod: Pod) -> Admission:
    """Add tolerations of 300 s for nodes that are not ready or unreachable, unless the pod has its own."""
    added = [
        Toleration(key=key, operator="Exists", effect="NoExecute", toleration_seconds=DEFAULT_SECONDS)
        for key in not_tolerated([(each.key, each.effect) for each in pod.spec.tolerations])
    ]
    if not added:
        return Admission(pod)
    tolerations = [*pod.spec.tolerations, *added]
    changes = _toleration_changes(pod.spec.tolerations, tolerations, _REASON)
    return Admission(replace_in(pod, "spec", tolerations=tolerations), changes)


def not_tolerated(tolerated: Collection[tuple[str, str]]) -> list[str]:
    """Return the taints that a new pod gets tolerations for, given the keys and effects that it tolerates already."""
    return [
        key
        for key in (NOT_READY, UNREACHABLE)
        if not any(its_key in (key, "") and effect in ("NoExecute", "") for its_key, effect in tolerated)
    ]


def merge_tolerations(first: list[Toleration], second: list[Toleration]) -> list[Toleration]:
    """Merge both lists in order, dropping tolerations that another one covers; of equal ones the first stays."""
    together = [*first, *second]
    merged: list[Toleration] = []
    for index, toleration in enumerate(together):
        is_redundant = any(_is_superset(kept, toleration) for kept in merged) or any(
            later != toleration and _is_superset(later, toleration) for later in together[index + 1 :]
        )
        if not is_redundant:
            merged.append(toleration)
    return merged


def _toleration_changes(before: list[Toleration], after: list[Toleration], reason: str) -> list[DefaultedField]:
    """Return a change for each toleration of ``after`` that is not in ``before``, at its new index.

    The text is the usual notation: ``key=value:Effect``, with the seconds if set.
    """
    changes = []
    for index, toleration in enumerate(after):
        if toleration in before:
            continue
        text = toleration.key or "*"
        if toleration.operator in ("", "Equal"):
            text += f"={toleration.value}"
        elif toleration.operator != "Exists":
            text += f" {toleration.operator} {toleration.value}"
        if toleration.effect:
            text += f":{toleration.effect}"
        if toleration.toleration_seconds is not None:
            text += f" for {toleration.toleration_seconds}s"
        changes.append(DefaultedField(f"spec.tolerations[{index}]", text, reason))
    return changes


def _is_superset(wide: Toleration, narrow: Toleration) -> bool:
    """Return whether ``wide`` tolerates everything ``narrow`` does (upstream's ``isSuperset``, including its gaps)."""
    if wide == narrow:
        return True
    if narrow.key != wide.key and (wide.key or wide.operator != "Exists"):
        return False
    if wide.effect and narrow.effect != wide.effect:
        return False
    if wide.effect == "NoExecute" and wide.toleration_seconds is not None:
        seconds = narrow.toleration_seconds
        if seconds is None or seconds > wide.toleration_seconds:
            return False
    if wide.operator in ("", "Equal"):
        return narrow.operator == "Equal" and narrow.value == wide.value
    return wide.operator == "Exists"


def _with_runtime_class(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """Apply the overhead and scheduling of the pod's RuntimeClass.

    Raises ``InputError`` if the API server rejects the pod: an unknown class, an overhead that differs from the
    class's, or a conflicting node selector. If RuntimeClasses were not read, the pod is unchanged, with an assumption.
    """
    name = pod.spec.runtime_class_name
    if name and _may_be_unread(name, cluster):
        return Admission(pod, assumptions=unread_of(cluster, [_RUNTIME_CLASS]))
    if not name:
        return Admission(pod)
    runtime_class = _find(pod, cluster)
    reason = f"RuntimeClass {name}"
    spec = pod.spec
    changes: list[DefaultedField] = []
    if runtime_class.overhead is not None:
        fixed = round_up_to_milli(runtime_class.overhead.pod_fixed)
        if spec.overhead and spec.overhead != fixed:
            raise rejected(pod, "Pod's Overhead doesn't match RuntimeClass's defined Overhead", path="spec.overhead")
        missing = {resource: amount for resource, amount in fixed.items() if resource not in spec.overhead}
        changes += (DefaultedField(f"spec.overhead.{key}", str(amount), reason) for key, amount in missing.items())
        spec = msgspec.structs.replace(spec, overhead=fixed)
    scheduling = runtime_class.scheduling
    if scheduling is not None:
        for key, value in sorted(scheduling.node_selector.items()):
            stated = spec.node_selector.get(key)
            if stated is None:
                changes.append(DefaultedField(f"spec.nodeSelector.{key}", value, reason))
            elif stated != value:
                conflict = (
                    f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                    f"pod.spec.nodeSelector[{key}] = {stated}"
                )
                raise rejected(pod, conflict, path="spec.nodeSelector")
        tolerations = merge_tolerations(spec.tolerations, scheduling.tolerations)
        changes += _toleration_changes(spec.tolerations, tolerations, reason)
        selector = {**spec.node_selector, **scheduling.node_selector}
        spec = msgspec.structs.replace(spec, node_selector=selector, tolerations=tolerations)
    return Admission(msgspec.structs.replace(pod, spec=spec), changes)


def _may_be_unread(name: str, cluster: ClusterSnapshot) -> bool:
    return _RUNTIME_CLASS in cluster.unread and all(each.metadata.name != name for each in cluster.runtime_classes)


def _find(pod: Pod, cluster: ClusterSnapshot) -> RuntimeClass:
    name = pod.spec.runtime_class_name
    by_name = {each.metadata.name: each for each in cluster.runtime_classes}
    if name in by_name:
        return by_name[name]
    near = difflib.get_close_matches(name, sorted(by_name), n=1)
    there = f"; available: {', '.join(sorted(by_name))}" if by_name else ""
    reason = f'RuntimeClass "{name}" not found{there}'
    raise rejected(pod, reason, path="spec.runtimeClassName", hint=near[0] if near else "")


def _without_disabled_fields(pod: Pod, rules: ApiServerRules) -> Admission:
    """Drop the fields that the API server drops, each with an assumption, because the gate may be on after all."""
    spec = pod.spec
    assumptions: list[Assumption] = []

    def dropped(field: str, gate: str, effect: str) -> None:
        message = (
            f"dropped: feature gate {gate} is assumed to be off in the API server, as by default in this version"
            f" (or does not exist yet); if it is on, {effect}"
        )
        assumptions.append(Assumption(f"Pod {pod.key}", field, message))

    if not rules.pod_level_resources and spec.resources is not None:
        spec = msgspec.structs.replace(spec, resources=None)
        effect = "pod-level requests replace those of the containers"
        dropped("spec.resources", "PodLevelResources", effect)
    if not rules.match_label_keys_in_pod_affinity and spec.affinity is not None:
        affinity = _with_terms(
            spec.affinity,
            lambda term, _: msgspec.structs.replace(term, match_label_keys=[], mismatch_label_keys=[]),
        )
        if affinity != spec.affinity:
            spec = msgspec.structs.replace(spec, affinity=affinity)
            effect = "they restrict its affinity to pods with the same, or with different, labels"
            dropped("spec.affinity[].matchLabelKeys", "MatchLabelKeysInPodAffinity", effect)
    constraints = spec.topology_spread_constraints
    if not rules.match_label_keys_in_pod_topology_spread and any(each.match_label_keys for each in constraints):
        constraints = [msgspec.structs.replace(each, match_label_keys=[]) for each in constraints]
        spec = msgspec.structs.replace(spec, topology_spread_constraints=constraints)
        effect = "only pods with the same labels are counted"
        dropped("spec.topologySpreadConstraints[].matchLabelKeys", "MatchLabelKeysInPodTopologySpread", effect)
    if spec is pod.spec:
        return Admission(pod)
    return Admission(msgspec.structs.replace(pod, spec=spec), assumptions=assumptions)


def _with_label_keys(pod: Pod, rules: ApiServerRules) -> Admission:
    """Write the labels that affinity and spread terms refer to into their selectors."""
    changes: list[DefaultedField] = []
    labels = pod.metadata.labels

    def selector(
        selector: LabelSelector | None, keys: list[str], operator: LabelSelectorOperator, path: str
    ) -> LabelSelector | None:
        """Add an expression per label key of the pod to the selector; ``None`` matches nothing and stays."""
        if selector is None:
            return None
        expressions = list(selector.match_expressions)
        source = "matchLabelKeys" if operator == "In" else "mismatchLabelKeys"
        for key in keys:
            if key not in labels:
                continue
            expression = LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
            field = f"{path}.labelSelector.matchExpressions[{len(expressions)}]"
            changes.append(DefaultedField(field, format_requirement(key, operator, expression.values), source))
            expressions.append(expression)
        return msgspec.structs.replace(selector, match_expressions=expressions)

    def merged(term: PodAffinityTerm, path: str) -> PodAffinityTerm:
        found = selector(term.label_selector, term.match_label_keys, "In", path)
        found = selector(found, term.mismatch_label_keys, "NotIn", path)
        return msgspec.structs.replace(term, label_selector=found)

    affinity = pod.spec.affinity
    if affinity is not None and rules.match_label_keys_in_pod_affinity:
        affinity = _with_terms(affinity, merged)
    constraints = pod.spec.topology_spread_constraints
    # For other values, the scheduler itself restricts the selector.
    if rules.match_label_keys_in_pod_topology_spread_selector_merge:
        constraints = [
            msgspec.structs.replace(
                each,
                label_selector=selector(
                    each.label_selector, each.match_label_keys, "In", f"spec.topologySpreadConstraints[{index}]"
                ),
            )
            for index, each in enumerate(constraints)
        ]
    if not changes:
        return Admission(pod)
    return Admission(replace_in(pod, "spec", affinity=affinity, topology_spread_constraints=constraints), changes)


def _with_terms(affinity: Affinity, changed: Callable[[PodAffinityTerm, str], PodAffinityTerm]) -> Affinity:
    """Return the affinity with ``changed`` applied to each pod affinity term and its path."""

    def with_terms(rules: _Rules, path: str) -> _Rules:
        required = [changed(term, f"{path}.{_REQUIRED}[{index}]") for index, term in enumerate(rules.required)]
        preferred = [
            msgspec.structs.replace(
                each,
                pod_affinity_term=changed(each.pod_affinity_term, f"{path}.{_PREFERRED}[{index}].podAffinityTerm"),
            )
            for index, each in enumerate(rules.preferred)
        ]
        return msgspec.structs.replace(rules, required=required, preferred=preferred)

    near, far = affinity.pod_affinity, affinity.pod_anti_affinity
    return msgspec.structs.replace(
        affinity,
        pod_affinity=with_terms(near, "spec.affinity.podAffinity") if near else None,
        pod_anti_affinity=with_terms(far, "spec.affinity.podAntiAffinity") if far else None,
    )
