"""Topology spread constraints ready to match (``plugins/podtopologyspread/common.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from kpreempt.model.labels import LabelSelector
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kube.framework.interface import PluginError
from kpreempt.schedulers.kube.framework.label_selectors import narrowed, selector_error
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.versions import Behaviour

Action = Literal["DoNotSchedule", "ScheduleAnyway"]

_REPELLING_EFFECTS = frozenset({"NoSchedule", "NoExecute"})

# What a pod without constraints gets, unless the configuration says otherwise.
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key="kubernetes.io/hostname", when_unsatisfiable="ScheduleAnyway"),
    TopologySpreadConstraint(
        max_skew=5, topology_key="topology.kubernetes.io/zone", when_unsatisfiable="ScheduleAnyway"
    ),
)


class SpreadConstraint(NamedTuple):
    """One constraint with its defaults filled in; ``selector`` ``None`` matches no pod.

    ``counts_all``: a selector that matches everything counts every pod, as it did of old, and not none.
    """

    max_skew: int
    topology_key: str
    selector: LabelSelector | None
    min_domains: int
    honors_node_affinity: bool
    honors_taints: bool
    counts_all: bool = False

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether a pod with these labels is one of those to spread."""
        return self.selector is not None and self.selector.matches(labels)


def constraints_for(
    stated: Iterable[TopologySpreadConstraint], labels: Mapping[str, str], action: Action, behaviour: Behaviour
) -> list[SpreadConstraint]:
    """The constraints with this action, for a pod with these labels.

    Raises ``PluginError`` with upstream's words where a selector cannot be parsed.
    """
    return [_constraint(each, labels, behaviour) for each in stated if each.when_unsatisfiable == action]


def _constraint(stated: TopologySpreadConstraint, labels: Mapping[str, str], behaviour: Behaviour) -> SpreadConstraint:
    error = selector_error(stated.label_selector, as_json=behaviour.tells_selectors_as_json)
    if error is not None:
        raise PluginError(error)
    selector = stated.label_selector
    if selector is not None and behaviour.match_label_keys_in_pod_topology_spread:
        selector = narrowed(selector, {key: labels[key] for key in stated.match_label_keys if key in labels})
    is_policy_read = behaviour.node_inclusion_policy_in_pod_topology_spread
    counts_domains = behaviour.min_domains_in_pod_topology_spread
    return SpreadConstraint(
        max_skew=stated.max_skew,
        topology_key=stated.topology_key,
        selector=selector,
        min_domains=stated.min_domains if counts_domains and stated.min_domains is not None else 1,
        honors_node_affinity=not (is_policy_read and stated.node_affinity_policy == "Ignore"),
        honors_taints=is_policy_read and stated.node_taints_policy == "Honor",
        counts_all=behaviour.counts_pods_for_empty_selectors,
    )


def has_all_keys(labels: Mapping[str, str], constraints: Iterable[SpreadConstraint]) -> bool:
    """Whether a node with these labels is in a domain of every constraint."""
    return all(constraint.topology_key in labels for constraint in constraints)


def count_matching(node_info: NodeInfo, constraint: SpreadConstraint, namespace: str) -> int:
    """How many of the node's pods count for the constraint.

    Pods that are being deleted do not. A selector that matches everything counts none here, although the incoming pod
    does match it (``countPodsMatchSelector``).
    """
    if not node_info.num_pods:
        return 0
    labels = node_info.labels_by_namespace.get(namespace)
    return sum(map(constraint.matches, labels)) if labels and is_counted(constraint) else 0


def counts_for(constraint: SpreadConstraint, namespace: str, pod: Pod) -> bool:
    """Whether a pod that is not being deleted counts for the constraint of a pod in ``namespace``."""
    if not is_counted(constraint) or pod.metadata.namespace != namespace:
        return False
    return constraint.matches(pod.metadata.labels)


def is_counted(constraint: SpreadConstraint) -> bool:
    """Whether any existing pod counts for the constraint."""
    selector = constraint.selector
    return selector is not None and (constraint.counts_all or not selector.is_empty())


class NodeInclusion:
    """Which nodes' pods and domains count for a pod: by its node affinity, its tolerations and the policies."""

    def __init__(self, pod: Pod, behaviour: Behaviour) -> None:
        self._pod = pod
        self._reads_policies = behaviour.node_inclusion_policy_in_pod_topology_spread
        self._compares_numbers = behaviour.taint_toleration_comparison_operators
        # Whether each constraint has counts of its own.
        self.counts_by_constraint = behaviour.counts_spread_by_constraint

    def is_node_included(self, node: Node) -> bool:
        """Whether the node can count for any constraint; without the policies node affinity decides for all of them."""
        return self._reads_policies or self._pod.spec.selects(node.name, node.labels)

    def is_included(self, node: Node, constraint: SpreadConstraint) -> bool:
        """Whether the node counts for this constraint, given that it can count at all."""
        if not self._reads_policies:
            return True
        if constraint.honors_node_affinity and not self._pod.spec.selects(node.name, node.labels):
            return False
        return not (constraint.honors_taints and self._has_untolerated_taint(node))

    def _has_untolerated_taint(self, node: Node) -> bool:
        taint = find_untolerated_taint(
            node.spec.taints, self._pod.spec.tolerations, _REPELLING_EFFECTS, compares_numbers=self._compares_numbers
        )
        return taint is not None
