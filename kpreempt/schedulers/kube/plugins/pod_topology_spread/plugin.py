"""PodTopologySpread: how evenly matching pods are spread over zones, hosts or any other node label.

Follows ``plugins/podtopologyspread`` of v1.36.3.

``HINTS`` are the changes that may help a pod that it rejected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod, TopologySpreadConstraint
from kpreempt.schedulers.kube.framework.arg_types import (
    INT32,
    REQUIREMENT,
    STRING,
    STRING_MAP,
    STRINGS,
    ListOf,
    Struct,
    child,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import Action, Awaited, has_position, is_same, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import BulkScorePlugin, LimitedFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from kpreempt.schedulers.kube.framework.label_selectors import default_selector, label_key_problems
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import (
    SYSTEM_DEFAULTS,
    FilterState,
    NodeInclusion,
    SpreadConstraint,
    UnsatisfiableAction,
    check_node,
    constraints_for,
)
from kpreempt.schedulers.kube.plugins.pod_topology_spread.scoring import ScoreState
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.status import SKIP

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable


_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")

PRE_FILTER_KEY = TreeKey("PreFilterPodTopologySpread")
PRE_SCORE_KEY = TreeKey("PreScorePodTopologySpread")


class PodTopologySpread(PreFilterPlugin, LimitedFilterPlugin, PreScorePlugin, BulkScorePlugin):
    """Hard constraints reject nodes; soft ones prefer nodes with fewer matching pods.

    A pod without constraints gets the default ones, with the selector of its services and its controller.
    """

    name = "PodTopologySpread"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._is_system_defaulted = args.get("defaultingType", "System") == "System"
        self._defaults: Sequence[TopologySpreadConstraint] = (
            SYSTEM_DEFAULTS
            if self._is_system_defaulted
            else msgspec.convert(args.get("defaultConstraints") or [], list[TopologySpreadConstraint])
        )
        self._handle = handle
        self._cluster = handle.cluster
        self._behavior = handle.behavior

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Count matching pods per domain; Skip if the pod has no hard constraint."""
        try:
            constraints = self.constraints_of(pod, "DoNotSchedule")
        except PluginError as error:
            prefix = "get constraints from pod: " if self._behavior.reports_failed_constraints else ""
            return None, Status(Code.ERROR, [f"{prefix}{error}"])
        if not constraints:
            return None, SKIP
        counts = FilterState(pod, constraints, NodeInclusion(pod, self._behavior))
        counts.add_all(nodes, self._handle.pod_table, state.findings)
        state.write(PRE_FILTER_KEY, counts)
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        """Count the pod that was added to the node."""
        filter_state_of(state).update(added.pod, node_info.node, 1)

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        """Subtract the pod that was removed from the node."""
        filter_state_of(state).update(removed.pod, node_info.node, -1)

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Check the constraints in order."""
        return check_node(filter_state_of(state), node_info.node)

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Return what each constraint allows in the domains of the nodes."""
        from kpreempt.schedulers.kube.plugins.pod_topology_spread.columns import spread_limits  # noqa: PLC0415

        return spread_limits(self.name, filter_state_of(state), table, nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Count matching pods per domain of the feasible nodes; Skip if the pod has no soft constraint."""
        try:
            constraints = self.constraints_of(pod, "ScheduleAnyway")
        except PluginError as error:
            return Status(Code.ERROR, [f"calculating preScoreState: {error}"])
        if not constraints:
            return SKIP
        # The system defaults also score nodes that lack one of the labels.
        requires_all_keys = bool(pod.spec.topology_spread_constraints) or not self._is_system_defaulted
        inclusion = NodeInclusion(pod, self._behavior)
        if state.places is not None and self._behavior.counts_spread_by_constraint:
            from kpreempt.schedulers.kube.plugins.pod_topology_spread.columns import SpreadScores  # noqa: PLC0415 - it needs NumPy

            spread = SpreadScores(state, pod, constraints, self._cluster, requires_all_keys=requires_all_keys)
            state.write(PRE_SCORE_KEY, spread.normalized(inclusion).tolist())
            return SUCCESS
        table = self._handle.tables.current if self._handle.tables is not None else None
        scoring = ScoreState(
            pod,
            constraints,
            nodes,
            # The pods of a cluster that follows another are already indexed.
            self._cluster.selected_pods if table is None or self._cluster.follows_closely else table.selected_pods,
            requires_all_keys=requires_all_keys,
            counts_by_constraint=self._behavior.counts_spread_by_constraint,
        )
        scoring.add_all(self._cluster.by_name, inclusion, requires_all_keys=requires_all_keys)
        state.write(PRE_SCORE_KEY, scoring)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return how crowded the node's domains are."""
        return self.score_all(state, pod, [node_info])[0]

    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[int]:
        """Return how crowded the domains of each node are; if PreScore scored them in bulk, the final scores."""
        found = state.read(PRE_SCORE_KEY)
        return found if isinstance(found, list) else _score_state(state).scores_of(nodes)

    def normalize_scores(self, state: CycleState, pod: Pod, scores: list[int], nodes: Sequence[NodeInfo]) -> list[int]:
        """Invert crowding: the least crowded node gets the highest score."""
        return scores if isinstance(state.read(PRE_SCORE_KEY), list) else _score_state(state).normalized(scores, nodes)

    def constraints_of(self, pod: Pod, action: UnsatisfiableAction) -> list[SpreadConstraint]:
        """Return the pod's own constraints or, if it has none, the default ones. Raises ``PluginError``."""
        stated, labels = pod.spec.topology_spread_constraints, pod.metadata.labels
        kind = "hard" if action == "DoNotSchedule" else "soft"
        if stated:
            try:
                return constraints_for(stated, labels, action, self._behavior)
            except PluginError as error:
                raise PluginError(f"obtaining pod's {kind} topology spread constraints: {error}") from error
        try:
            constraints = constraints_for(self._defaults, labels, action, self._behavior)
        except PluginError as error:
            raise PluginError(f"setting default {kind} topology spread constraints: {error}") from error
        if not constraints:
            return []
        selector = default_selector(pod, self._cluster.cluster)
        if selector.is_empty():
            return []
        return [constraint._replace(selector=selector) for constraint in constraints]


def default_args(args: Mapping[str, Any], behavior: Behavior) -> dict[str, Any]:
    """Return the arguments with defaults as loading sets them (``apis/config/v1/defaults.go``)."""
    return {**args, "defaultingType": args.get("defaultingType") or "System"}


def filter_state_of(state: CycleState) -> FilterState:
    """Return the counts from PreFilter. Raises ``PluginError`` if it did not run."""
    counts = state.read(PRE_FILTER_KEY)
    if not isinstance(counts, FilterState):
        raise PluginError(f'reading "{PRE_FILTER_KEY}" from cycleState: not found')
    return counts


def _score_state(state: CycleState) -> ScoreState:
    scoring = state.read(PRE_SCORE_KEY)
    if not isinstance(scoring, ScoreState):
        raise PluginError(f'error reading "{PRE_SCORE_KEY}" from cycleState: not found')
    return scoring


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    kind, constraints = args["defaultingType"], args.get("defaultConstraints", [])
    problems = []
    if kind not in ("System", "List"):
        problems.append(unsupported(child(path, "defaultingType"), kind, ("System", "List")))
    elif kind == "System" and constraints:
        problems.append(invalid(child(path, "defaultingType"), kind, "when .defaultConstraints are not empty"))
    seen: set[tuple[str, str]] = set()
    for index, constraint in enumerate(constraints):
        location = f"{child(path, 'defaultConstraints')}[{index}]"
        problems += _spread_constraint(location, constraint)
        identity = (constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", ""))
        if identity in seen:
            problems.append(duplicate(location, f"{{{identity[0]}, {identity[1]}}}"))
        seen.add(identity)
    return problems


def _spread_constraint(path: str, constraint: Mapping[str, Any]) -> list[str]:
    max_skew, key = constraint.get("maxSkew", 0), constraint.get("topologyKey", "")
    action = constraint.get("whenUnsatisfiable", "")
    problems = []
    if max_skew <= 0:
        problems.append(invalid(child(path, "maxSkew"), max_skew, "not in valid range (0, inf)"))
    if key:
        problems += [invalid(child(path, "topologyKey"), key, problem) for problem in label_key_problems(key)]
    else:
        problems.append(required(child(path, "topologyKey"), "can not be empty"))
    if not action:
        problems.append(required(child(path, "whenUnsatisfiable"), "can not be empty"))
    elif action not in _ACTIONS:
        problems.append(unsupported(child(path, "whenUnsatisfiable"), action, _ACTIONS))
    if "labelSelector" in constraint:
        detail = "constraint must not define a selector, as they deduced for each pod"
        problems.append(forbidden(child(path, "labelSelector"), detail))
    return problems


_CONSTRAINT = Struct(
    "TopologySpreadConstraint",
    {
        "maxSkew": INT32,
        "topologyKey": STRING,
        "whenUnsatisfiable": STRING,
        "labelSelector": Struct(
            "LabelSelector",
            {"matchLabels": STRING_MAP, "matchExpressions": ListOf(Struct("LabelSelectorRequirement", REQUIREMENT))},
        ),
        "minDomains": INT32,
        "nodeAffinityPolicy": STRING,
        "nodeTaintsPolicy": STRING,
        "matchLabelKeys": STRINGS,
    },
)


PLUGIN = in_tree(
    PodTopologySpread,
    args={"defaultConstraints": ListOf(_CONSTRAINT), "defaultingType": STRING},
    default_args=default_args,
    arg_problems=arg_problems,
    awaits=lambda: HINTS,
)


def pod_changes_spread(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Return whether a pod that a constraint counts was added or removed, or whether it counts differently now."""
    for each in filter(None, (old, new)):
        if not is_same(each, pod) and not (has_position(each) and each.metadata.namespace == pod.metadata.namespace):
            return False
    constraints = _spread_constraints(pod)
    if old is None or new is None:
        changed_pod = old or new
        return changed_pod is not None and any(_selects(each, changed_pod) for each in constraints)
    if (
        is_same(new, pod)
        and old.spec.tolerations != new.spec.tolerations
        and any(each.node_taints_policy == "Honor" for each in constraints)
    ):
        return True
    return any(_selects(each, old) != _selects(each, new) for each in constraints)


def node_changes_spread(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Return whether the node joins, leaves or changes a domain, or has other taints."""
    keys = [each.topology_key for each in _spread_constraints(pod)]
    was_in = old is not None and all(key in old.labels for key in keys)
    is_in = new is not None and all(key in new.labels for key in keys)
    if old is None or new is None:
        return was_in or is_in
    if was_in != is_in:
        return True
    return is_in and (old.spec.taints != new.spec.taints or any(old.labels[key] != new.labels[key] for key in keys))


def _spread_constraints(pod: Pod) -> list[TopologySpreadConstraint]:
    """Return the pod's own hard constraints; those in the scheduler's configuration are not considered."""
    return [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]


def _selects(constraint: TopologySpreadConstraint, pod: Pod) -> bool:
    return constraint.label_selector is not None and constraint.label_selector.matches(pod.metadata.labels)


HINTS: Sequence[Awaited] = (
    on_pod(
        Action.ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | Action.DELETE,
        pod_changes_spread,
    ),
    on_node(Action.ADD | Action.DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT, node_changes_spread),
)
