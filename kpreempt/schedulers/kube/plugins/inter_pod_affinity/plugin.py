"""InterPodAffinity: affinity and anti-affinity of the pod, and anti-affinity of existing pods.

Follows ``plugins/interpodaffinity`` of v1.36.3.

``HINTS`` are the changes that may help a pod that it rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from kpreempt.model.affinity import PodAffinityTerm
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import BOOL, INT32, child, invalid
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, Awaited, has_position, is_same, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.filtering import (
    Evidence,
    FilterState,
    IncomingPod,
    check_node,
    parse_error,
)
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.scoring import (
    Preferences,
    has_preferences,
    node_weight,
    normalized,
)
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.status import SKIP

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable


PRE_FILTER_KEY = TreeKey("PreFilterInterPodAffinity")
PRE_SCORE_KEY = TreeKey("PreScoreInterPodAffinity")


class InterPodAffinity(PreFilterPlugin, LimitedFilterPlugin, PreScorePlugin, ScorePlugin):
    """Required terms, including those of existing pods, reject nodes; preferred ones change the score."""

    name = "InterPodAffinity"
    scales_to_extremes = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        weight = args.get("hardPodAffinityWeight", 1)
        assert isinstance(weight, int)
        self._hard_affinity_weight = weight
        self._ignores_preferences_of_existing = bool(args.get("ignorePreferredTermsOfExistingPods", False))
        self._handle = handle
        self._cluster = handle.cluster
        self._behavior = handle.behavior

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Count matching pods per topology; Skip if the pod has no required terms and no pod excludes it."""
        error = parse_error(pod, self._behavior)
        if error is not None:
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [f"parsing pod: {error}"])
        namespace_labels = self._cluster.namespace_labels(pod.metadata.namespace)
        incoming = IncomingPod(
            PodInfo(pod, self._behavior),
            self._cluster.selected_namespaces,
            namespace_labels,
            keeps_selectors=self._behavior.keeps_namespace_selectors,
        )
        counts = FilterState(incoming, Evidence(incoming, nodes, state.findings))
        if state.findings is not None:
            # If the pod has no required terms, only other pods can exclude it.
            refusing = self.nodes_with_anti_affinity(nodes) if counts.is_indifferent else nodes
            counts.add_known(refusing, state.findings)
        else:
            tables = self._handle.tables
            is_table_worth_it = tables is None or tables.current is not None or not counts.is_indifferent
            # None is built just for the pods that may exclude this one.
            table = self._handle.pod_table if is_table_worth_it else None
            counts.add_all(nodes, table, refusing=self.nodes_with_anti_affinity(nodes) if table is None else ())
        if counts.is_indifferent:
            return None, SKIP
        state.write(PRE_FILTER_KEY, counts)
        return None, SUCCESS

    def nodes_with_anti_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return the nodes with pods that may exclude the incoming one."""
        return self._cluster.nodes_with_anti_affinity

    def nodes_with_affinity(self, nodes: Sequence[NodeInfo]) -> Sequence[NodeInfo]:
        """Return the nodes with pods that may prefer or avoid the incoming one."""
        return self._cluster.nodes_with_affinity

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Count the pod that was added to the node."""
        filter_state_of(state).update(added, node_info.node.labels, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Subtract the pod that was removed from the node."""
        filter_state_of(state).update(removed, node_info.node.labels, -1)

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Check the pod's affinity, then its anti-affinity, then that of existing pods."""
        return check_node(filter_state_of(state), node_info)

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits:
        """Return limits for affinity (at least one pod) and anti-affinity (no pods)."""
        from kpreempt.schedulers.kube.plugins.inter_pod_affinity.columns import affinity_limits  # noqa: PLC0415

        return affinity_limits(self.name, filter_state_of(state), table, nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Sum up preferences over all nodes of the cluster; Skip if none applies."""
        own = has_preferences(pod)
        if self._ignores_preferences_of_existing and not own:
            return SKIP
        error = parse_error(pod, self._behavior)
        if error is not None:
            return Status(Code.ERROR, [f"failed to parse pod: {error}"])
        preferences = Preferences(
            PodInfo(pod, self._behavior),
            self._cluster.selected_namespaces,
            self._cluster.namespace_labels(pod.metadata.namespace),
            self._hard_affinity_weight,
            keeps_selectors=self._behavior.keeps_namespace_selectors,
        )
        nodes = self._cluster.node_infos
        table = self._handle.tables.current if self._handle.tables is not None else None
        if table is not None and state.findings is None:
            preferences.add_table(nodes, table)
        else:
            preferences.add_all(
                nodes if own else self.nodes_with_affinity(nodes), has_preferences=own, findings=state.findings
            )
        if not preferences.weights:
            return SKIP
        state.write(PRE_SCORE_KEY, preferences.weights)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the node's weight, which may be negative."""
        weights = state.read(PRE_SCORE_KEY)
        if not isinstance(weights, dict):
            raise PluginError(f'failed to read "{PRE_SCORE_KEY}" from cycleState: not found')
        return node_weight(weights, node_info)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Scale the weights to 0 to 100."""
        return normalized(scores)


def default_args(args: Mapping[str, Any], behavior: Behavior) -> dict[str, Any]:
    """Return the arguments with defaults as loading sets them (``apis/config/v1/defaults.go``)."""
    return {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": False, **args}


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    weight = args["hardPodAffinityWeight"]
    if 0 <= weight <= 100:
        return []
    return [invalid(child(path, "hardPodAffinityWeight"), weight, "not in valid range [0, 100]")]


def filter_state_of(state: CycleState) -> FilterState:
    """Return the counts from PreFilter. Raises ``PluginError`` if it did not run."""
    counts = state.read(PRE_FILTER_KEY)
    if not isinstance(counts, FilterState):
        raise PluginError(f'error reading "{PRE_FILTER_KEY}" from cycleState: not found')
    return counts


PLUGIN = in_tree(
    InterPodAffinity,
    args={"hardPodAffinityWeight": INT32, "ignorePreferredTermsOfExistingPods": BOOL},
    default_args=default_args,
    arg_problems=arg_problems,
    awaits=lambda: HINTS,
)


def changes_affinity(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Return whether a pod was added that affinity requires, or one was removed that anti-affinity excludes."""
    if old is not None and new is not None and is_same(new, pod):
        return True
    if any(each is not None and not has_position(each) for each in (old, new)):
        return False
    requested, refused = _affinity_terms(pod), _anti_affinity_terms(pod)
    if old is not None and new is not None:
        return (not _match_all(pod, requested, old) and _match_all(pod, requested, new)) or (
            _match_all(pod, refused, old) and not _match_all(pod, refused, new)
        )
    if new is not None:
        return _match_all(pod, requested, new)
    return old is not None and (_match_all(pod, refused, old) or _match_all(old, _anti_affinity_terms(old), pod))


def changes_topology(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Return whether the node joins a domain of the pod's affinity, or leaves one of its anti-affinity."""
    if new is None:
        return False
    requested, refused = (
        [term.topology_key for term in terms(pod)] for terms in (_affinity_terms, _anti_affinity_terms)
    )
    if old is None:
        return bool(refused) or any(key in new.labels for key in requested)
    before, after = old.labels, new.labels
    return any(key in after and before.get(key) != after[key] for key in requested) or any(
        key in before and after.get(key) != before[key] for key in refused
    )


def matches_term(pod: Pod, other: Pod) -> bool | None:
    """Return whether a required affinity term matches the other pod; ``None`` if namespace labels decide."""
    terms = [
        term
        for term in _affinity_terms(pod)
        if term.label_selector is not None and term.label_selector.matches(other.metadata.labels)
    ]
    if any(_matches(pod, term, other) for term in terms):
        return True
    return None if any(term.namespace_selector is not None for term in terms) else False


def _affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """Return the pod's required affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_affinity.required if affinity and affinity.pod_affinity else ()


def _anti_affinity_terms(pod: Pod) -> Sequence[PodAffinityTerm]:
    """Return the pod's required anti-affinity terms."""
    affinity = pod.spec.affinity
    return affinity.pod_anti_affinity.required if affinity and affinity.pod_anti_affinity else ()


def _match_all(owner: Pod, terms: Sequence[PodAffinityTerm], pod: Pod) -> bool:
    return bool(terms) and all(_matches(owner, term, pod) for term in terms)


def _matches(owner: Pod, term: PodAffinityTerm, pod: Pod) -> bool:
    namespaces = term.namespaces
    if not namespaces and term.namespace_selector is None:
        namespaces = [owner.metadata.namespace]
    # Upstream passes no namespace labels to the hints, so only a selector that matches all namespaces matches.
    in_namespace = pod.metadata.namespace in namespaces or (
        term.namespace_selector is not None and term.namespace_selector.matches({})
    )
    return in_namespace and term.label_selector is not None and term.label_selector.matches(pod.metadata.labels)


HINTS: Sequence[Awaited] = (
    on_pod(Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE, changes_affinity),
    on_node(Action.ADD | Action.UPDATE_NODE_LABEL, changes_topology),
)
