"""``matchLabelKeys`` and ``mismatchLabelKeys``, which the API server turns into label expressions.

Follows ``k8s.io/kubernetes`` v1.36.3 ``pkg/registry/core/pod/strategy.go`` (``mutatePodAffinity`` and
``mutateTopologySpreadConstraints``). The scheduler reads only the selector of an affinity term, never its keys.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kpreempt.admission.records import Admission
from kpreempt.model.affinity import PodAffinity, PodAffinityTerm, PodAntiAffinity, WeightedPodAffinityTerm
from kpreempt.model.labels import LabelSelector, LabelSelectorOperator, LabelSelectorRequirement, format_requirement
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.verdict import Admitted

_Rules = TypeVar("_Rules", PodAffinity, PodAntiAffinity)

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def admit_label_keys(pod: Pod) -> Admission:
    """The pod with the labels that its affinity and spread terms refer to written into their selectors."""
    changes: list[Admitted] = []
    labels = pod.metadata.labels
    affinity = pod.spec.affinity
    if affinity is not None:
        near, far = affinity.pod_affinity, affinity.pod_anti_affinity
        affinity = msgspec.structs.replace(
            affinity,
            pod_affinity=_merged(near, labels, "spec.affinity.podAffinity", changes) if near else None,
            pod_anti_affinity=_merged(far, labels, "spec.affinity.podAntiAffinity", changes) if far else None,
        )
    constraints = [
        _spread(constraint, labels, f"spec.topologySpreadConstraints[{index}]", changes)
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
