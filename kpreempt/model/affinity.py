"""Node affinity and pod affinity as the API states them, and how node terms match.

Node terms follow ``k8s.io/component-helpers`` v0.36.3 ``scheduling/corev1/nodeaffinity``.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from kpreempt.model.frozen import NO_ITEMS, Few, Handful, Many
from kpreempt.model.labels import (
    LabelSelector,
    NodeSelectorRequirement,
    is_label_key,
    is_label_value,
    matches_requirement,
    parse_int64,
)

METADATA_NAME_FIELD = "metadata.name"


class NodeSelectorTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Expressions over labels and fields that must all hold. An empty term matches no node."""

    match_expressions: Handful[NodeSelectorRequirement] = NO_ITEMS
    match_fields: Handful[NodeSelectorRequirement] = NO_ITEMS

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether the node satisfies the term; an empty or invalid term matches nothing."""
        is_valid = all(map(is_valid_node_requirement, self.match_expressions)) and all(
            map(is_valid_field_requirement, self.match_fields)
        )
        if not is_valid or not (self.match_expressions or self.match_fields):
            return False
        if not all(
            matches_requirement(requirement.key, requirement.operator, requirement.values, labels)
            for requirement in self.match_expressions
        ):
            return False
        fields = {METADATA_NAME_FIELD: node_name}
        # Upstream ignores the fields of a node without a name.
        return not node_name or all(
            matches_requirement(requirement.key, requirement.operator, requirement.values, fields)
            for requirement in self.match_fields
        )


def is_valid_node_requirement(requirement: NodeSelectorRequirement) -> bool:
    """Return whether upstream can build the requirement; the API server does not check all of this."""
    operator, values = requirement.operator, requirement.values
    if not is_label_key(requirement.key) or not all(map(is_label_value, values)):
        return False
    if operator in ("In", "NotIn"):
        return bool(values)
    if operator in ("Exists", "DoesNotExist"):
        return not values
    return len(values) == 1 and parse_int64(values[0]) is not None


def is_valid_field_requirement(requirement: NodeSelectorRequirement) -> bool:
    """Fields take In and NotIn with exactly one value."""
    return requirement.operator in ("In", "NotIn") and len(requirement.values) == 1


class NodeSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Terms, at least one of which must match."""

    node_selector_terms: Many[NodeSelectorTerm] = NO_ITEMS

    def matches(self, node_name: str, labels: Mapping[str, str]) -> bool:
        """Return whether any term matches the node; without terms, nothing matches."""
        return any(term.matches(node_name, labels) for term in self.node_selector_terms)


class PreferredSchedulingTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A node term with the weight (1 to 100) that a match adds."""

    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Required and preferred nodes of a pod."""

    required: NodeSelector | None = msgspec.field(name="requiredDuringSchedulingIgnoredDuringExecution", default=None)
    preferred: Few[PreferredSchedulingTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PodAffinityTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods selected by labels and namespaces, within one value of ``topology_key``."""

    topology_key: str = ""
    label_selector: LabelSelector | None = None
    namespaces: Few[str] = NO_ITEMS
    namespace_selector: LabelSelector | None = None
    match_label_keys: Few[str] = NO_ITEMS
    mismatch_label_keys: Few[str] = NO_ITEMS


class WeightedPodAffinityTerm(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod affinity term with the weight (1 to 100) that each matching pod adds."""

    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Pods that a pod must or should run near."""

    required: Handful[PodAffinityTerm] = msgspec.field(
        name="requiredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )
    preferred: Handful[WeightedPodAffinityTerm] = msgspec.field(
        name="preferredDuringSchedulingIgnoredDuringExecution", default_factory=list
    )


class PodAntiAffinity(PodAffinity, frozen=True):
    """Pods that a pod must not or should not run near."""


class Affinity(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A pod's node affinity, pod affinity and pod anti-affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None

    @property
    def pod_terms(self) -> list[PodAffinityTerm]:
        """The terms about other pods: affinity before anti-affinity, required before preferred."""
        return [
            term
            for rules in (self.pod_affinity, self.pod_anti_affinity)
            if rules is not None
            for term in (*rules.required, *(weighted.pod_affinity_term for weighted in rules.preferred))
        ]


def tied_node_of(affinity: Affinity | None) -> str:
    """Return the node that required affinity selects by name, as for a DaemonSet's pod, or an empty string."""
    required = affinity.node_affinity.required if affinity is not None and affinity.node_affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field in term.match_fields:
            if field.key == METADATA_NAME_FIELD and field.operator == "In":
                return field.values[0] if len(field.values) == 1 else ""
    return ""


def tied_to(affinity: Affinity | None, node_name: str) -> Affinity:
    """Return ``affinity`` with the node as its only requirement; preferences stay."""
    field = NodeSelectorRequirement(key=METADATA_NAME_FIELD, operator="In", values=[node_name])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    affinity = affinity or Affinity()
    node_affinity = msgspec.structs.replace(affinity.node_affinity or NodeAffinity(), required=required)
    return msgspec.structs.replace(affinity, node_affinity=node_affinity)
