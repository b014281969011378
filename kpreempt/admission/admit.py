"""All that the API server does to a new pod before the scheduler sees it, in the API server's order.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/kubeapiserver/options/plugins.go`` (the order, and which plugins are on by
default), and for ``matchLabelKeys`` and ``mismatchLabelKeys``, which become label expressions,
``pkg/registry/core/pod/strategy.go`` (``mutatePodAffinity`` and ``mutateTopologySpreadConstraints``): the scheduler
reads only the selector of an affinity term, never its keys. Versions differ in what ``rules`` say. Webhooks and
admission policies of a cluster are unknown here, and quotas are not counted.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kpreempt.admission.api_defaults import admit_api_defaults, admit_pod_level_resources
from kpreempt.admission.priority import admit_priority
from kpreempt.admission.records import Admission
from kpreempt.admission.rules import USUAL, ApiServerRules
from kpreempt.admission.runtime_classes import admit_runtime_class, check_overhead
from kpreempt.admission.tolerations import admit_default_tolerations
from kpreempt.model.affinity import PodAffinity, PodAffinityTerm, PodAntiAffinity, WeightedPodAffinityTerm
from kpreempt.model.cluster import ClusterSnapshot, KindState, state_of
from kpreempt.model.labels import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, format_requirement
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.verdict import Admitted, Assumption

_EVERY_CLUSTER_HAS = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})

_Rules = TypeVar("_Rules", PodAffinity, PodAntiAffinity)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def admit(pod: Pod, cluster: ClusterSnapshot, rules: ApiServerRules = USUAL) -> Admission:
    """The pod as the scheduler would see it if it were created now, what was filled in, and what was assumed.

    Raises ``NotFoundError`` for an unknown PriorityClass and ``InputError`` where the API server would refuse the pod.
    A pod that is in the cluster was admitted when it was created; this is for new ones.
    """
    changes: list[Admitted] = []
    assumptions: list[Assumption] = _missing_namespace(pod, cluster)
    steps = (
        lambda pod: admit_api_defaults(pod, rules),
        lambda pod: _with_limit_ranges(pod, cluster),
        lambda pod: admit_priority(pod, cluster),
        admit_default_tolerations,
        lambda pod: admit_runtime_class(pod, cluster),
        lambda pod: _kept_fields(pod, rules),
        lambda pod: admit_label_keys(pod, rules),
        lambda pod: admit_pod_level_resources(pod, rules),
        lambda pod: _validated(pod, cluster),
        # The stored pod is read back before the scheduler sees it, and gets the defaults once more.
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
    if not cluster.limit_ranges and (state is KindState.READ or (state is KindState.ABSENT and _has_requests(pod))):
        return Admission(pod)
    from kpreempt.admission.limit_ranges import admit_limit_ranges  # noqa: PLC0415 - few clusters have any

    return admit_limit_ranges(pod, cluster)


def _has_requests(pod: Pod) -> bool:
    """Whether each container requests something, so that a default request would be no surprise."""
    return all(each.resources.requests or each.resources.limits for each in pod.spec.containers)


def _kept_fields(pod: Pod, rules: ApiServerRules) -> Admission:
    if rules.has_all_fields:
        return Admission(pod)
    from kpreempt.admission.disabled_fields import drop_disabled_fields  # noqa: PLC0415 - none since 1.34

    return drop_disabled_fields(pod, rules)


def _validated(pod: Pod, cluster: ClusterSnapshot) -> Admission:
    """The same pod; validation comes after every plugin that may change it."""
    if cluster.limit_ranges:
        from kpreempt.admission.limit_ranges import check_limit_ranges  # noqa: PLC0415 - few clusters have any

        check_limit_ranges(pod, cluster)
    check_overhead(pod, cluster)
    return Admission(pod)


def _missing_namespace(pod: Pod, cluster: ClusterSnapshot) -> list[Assumption]:
    name = pod.metadata.namespace
    known = {namespace.metadata.name for namespace in cluster.namespaces}
    if not known or name in known or name in _EVERY_CLUSTER_HAS or "Namespace" in cluster.unread:
        return []
    message = f'the input has no namespace "{name}"; without it the API server refuses the pod'
    return [Assumption(subject=f"Pod {pod.key}", field="metadata.namespace", message=message)]


def admit_label_keys(pod: Pod, rules: ApiServerRules = USUAL) -> Admission:
    """The pod with the labels that its affinity and spread terms refer to written into their selectors."""
    changes: list[Admitted] = []
    labels = pod.metadata.labels
    affinity = pod.spec.affinity
    if affinity is not None and rules.match_label_keys_in_pod_affinity:
        near, far = affinity.pod_affinity, affinity.pod_anti_affinity
        affinity = msgspec.structs.replace(
            affinity,
            pod_affinity=_merged(near, labels, "spec.affinity.podAffinity", changes) if near else None,
            pod_anti_affinity=_merged(far, labels, "spec.affinity.podAntiAffinity", changes) if far else None,
        )
    merges = rules.match_label_keys_in_pod_topology_spread_selector_merge
    # Elsewhere the scheduler narrows the selector by itself.
    constraints = [
        _spread(constraint, labels, f"spec.topologySpreadConstraints[{index}]", changes) if merges else constraint
        for index, constraint in enumerate(pod.spec.topology_spread_constraints)
    ]
    if not changes:
        return Admission(pod)
    spec = msgspec.structs.replace(pod.spec, affinity=affinity, topology_spread_constraints=constraints)
    return Admission(msgspec.structs.replace(pod, spec=spec), changes)


def _merged(rules: _Rules, labels: dict[str, str], path: str, changes: list[Admitted]) -> _Rules:
    required = [
        _term(term, labels, f"{path}.{_REQUIRED}[{index}]", changes) for index, term in enumerate(rules.required)
    ]
    preferred = [
        _weighted(weighted, labels, f"{path}.{_PREFERRED}[{index}].podAffinityTerm", changes)
        for index, weighted in enumerate(rules.preferred)
    ]
    return msgspec.structs.replace(rules, required=required, preferred=preferred)


def _weighted(
    weighted: WeightedPodAffinityTerm, labels: dict[str, str], path: str, changes: list[Admitted]
) -> WeightedPodAffinityTerm:
    term = _term(weighted.pod_affinity_term, labels, path, changes)
    return msgspec.structs.replace(weighted, pod_affinity_term=term)


def _term(term: PodAffinityTerm, labels: dict[str, str], path: str, changes: list[Admitted]) -> PodAffinityTerm:
    selector = _selector(term.label_selector, term.match_label_keys, "In", labels, path, changes)
    selector = _selector(selector, term.mismatch_label_keys, "NotIn", labels, path, changes)
    return msgspec.structs.replace(term, label_selector=selector)


def _spread(
    constraint: TopologySpreadConstraint, labels: dict[str, str], path: str, changes: list[Admitted]
) -> TopologySpreadConstraint:
    selector = _selector(constraint.label_selector, constraint.match_label_keys, "In", labels, path, changes)
    return msgspec.structs.replace(constraint, label_selector=selector)


def _selector(
    selector: LabelSelector | None,
    keys: list[str],
    operator: LabelSelectorOperator,
    labels: dict[str, str],
    path: str,
    changes: list[Admitted],
) -> LabelSelector | None:
    """The selector with one more expression per key that the pod has a label for. None matches nothing and stays."""
    if selector is None:
        return None
    expressions = list(selector.match_expressions)
    source = "matchLabelKeys" if operator == "In" else "mismatchLabelKeys"
    for key in keys:
        if key not in labels:
            continue
        expression = LabelSelectorRequirement(key=key, operator=operator, values=[labels[key]])
        where = f"{path}.labelSelector.matchExpressions[{len(expressions)}]"
        changes.append(Admitted(where, format_requirement(key, operator, expression.values), source))
        expressions.append(expression)
    return msgspec.structs.replace(selector, match_expressions=expressions)
