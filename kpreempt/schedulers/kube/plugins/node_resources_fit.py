"""NodeResourcesFit: whether the pod's requests fit, and how full the node would be.

Follows ``plugins/noderesources/fit.go`` of v1.36.3.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.arg_types import (
    RESOURCES,
    SHAPE,
    STRING,
    STRINGS,
    Struct,
    child,
    forbidden,
    invalid,
    required,
    unsupported,
)
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import WRITTEN, Action, has_position, is_same, on, on_node, on_pod
from kpreempt.schedulers.kube.framework.in_tree import (
    BulkFilterPlugin,
    BulkScorePlugin,
    LimitedFilterPlugin,
    Outline,
    in_tree,
)
from kpreempt.schedulers.kube.framework.interface import (
    Handle,
    PluginArgs,
    PluginError,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
)
from kpreempt.schedulers.kube.framework.label_selectors import label_key_problems
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    ResourceScorer,
    allocation_scorer,
    shape_problems,
    weighted_resources,
)
from kpreempt.schedulers.kube.framework.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    Resource,
    is_extended_resource,
    is_sidecar,
    pod_requests,
)
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status, details
from kpreempt.verdict.details import Shortfall

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable

_BASIC = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
# Statuses without details, which are compared by their identity: by version's rule and kind.
_OUTLINES: dict[tuple[bool, int], Status] = {}
# The first of the bits of these resources that say that the whole node has too little.
_LACKS = 1 << len(_BASIC)
_STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")

REASON_TOO_MANY_PODS = "Too many pods"
REASON_SIDECARS_DISABLED = "Pod has a restartable init container and the SidecarContainers feature is disabled"
_SIDECARS_DISABLED = Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_SIDECARS_DISABLED])

STATE_KEY = TreeKey("NodeResourcesFit")
_PRE_SCORE_KEY = TreeKey("PreScoreNodeResourcesFit")


class NodeResourcesFit(PreFilterPlugin, LimitedFilterPlugin, BulkFilterPlugin, PreScorePlugin, BulkScorePlugin):
    """Compares requests with what the node has left; the score follows the configured strategy."""

    name = "NodeResourcesFit"
    is_local = True

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._handle = handle
        self._behavior = handle.behavior
        self._rules_out_excess = handle.behavior.rules_out_requests_above_allocatable
        self._device_resources = handle.cluster.classes_of_extended_resources
        self._ignored = frozenset(_strings(args.get("ignoredResources")))
        self._ignored_groups = frozenset(_strings(args.get("ignoredResourceGroups")))
        score, weights = allocation_scorer(args)
        # Since 1.33, upstream does not pass the pod-level gates to this scorer.
        self._scorer = ResourceScorer(
            weights,
            score,
            counts_pod_level=self._behavior.pod_level_resources and self._behavior.scores_fit_by_complete_pods,
            use_requested=False,
            rounds_by_container=self._behavior.rounds_requests_by_container,
            devices=handle.cluster.devices_serving if self._behavior.dra_extended_resource else None,
        )

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Compute the pod's requests."""
        if self._behavior.rejects_sidecars_before_filters and self._has_disabled_sidecars(pod):
            return None, _SIDECARS_DISABLED
        requests = pod_requests(pod, pod_level=self._behavior.pod_level_resources)
        state.write(STATE_KEY, Resource.from_nano(requests))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node for every insufficient resource; permanently if a request exceeds the whole node."""
        if not self._behavior.rejects_sidecars_before_filters and self._has_disabled_sidecars(pod):
            return _SIDECARS_DISABLED
        requested = state.read(STATE_KEY)
        if not isinstance(requested, Resource):
            raise PluginError(f'error reading "PreFilter{self.name}" from cycleState: not found')
        shortfalls = self.shortfalls(requested, node_info)
        return self.rejection(shortfalls, node_info.num_pods) if shortfalls else SUCCESS

    def suspects(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Collection[NodeInfo]:
        """Return nodes short of CPU, memory, disk or pod slots; all nodes if the pod requests other resources."""
        requested = state.read(STATE_KEY)
        if not isinstance(requested, Resource) or requested.scalar or self._has_disabled_sidecars(pod):
            return nodes
        cpu, memory, disk = requested.milli_cpu, requested.memory, requested.ephemeral_storage
        return [
            node_info
            for node_info in nodes
            if (used := node_info.requested).milli_cpu + cpu > (total := node_info.allocatable).milli_cpu
            or used.memory + memory > total.memory
            or used.ephemeral_storage + disk > total.ephemeral_storage
            or node_info.num_pods + 1 > total.allowed_pod_number
        ]

    def outline(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Sequence[Status] | None:
        """Compare the requests with all nodes in columns, unless the pod requests other resources."""
        requested, tables = state.read(STATE_KEY), self._handle.tables
        if not isinstance(requested, Resource) or requested.scalar or self._has_disabled_sidecars(pod):
            return None
        amounts = tables.amounts_of(nodes) if tables is not None else None
        if amounts is None:
            return None
        import numpy as np  # noqa: PLC0415 - loaded in big clusters

        # The same as ``shortfalls``: a bit for each resource that is short, and for each that the whole node lacks.
        kinds = np.zeros(len(nodes), np.int64)
        for bit, (want, total, used) in enumerate(
            (
                (1, amounts.pods, amounts.num_pods),
                (requested.milli_cpu, amounts.milli_cpu, amounts.used_milli_cpu),
                (requested.memory, amounts.memory, amounts.used_memory),
                (requested.ephemeral_storage, amounts.ephemeral_storage, amounts.used_ephemeral_storage),
            )
        ):
            if want > 0:
                kinds |= (want > total - used).astype(np.int64) << bit | (want > total) * _LACKS << bit
        key = self._rules_out_excess
        outlines = {kind: _OUTLINES.get((key, kind)) or self._outline_of(kind) for kind in set(kinds.tolist())}
        return [outlines[kind] for kind in kinds.tolist()]

    def _outline_of(self, kind: int) -> Status:
        short = [
            Shortfall(name, 1, 0, 0, name != PODS and bool(kind & _LACKS << bit))
            for bit, name in enumerate(_BASIC)
            if kind & 1 << bit
        ]
        outline: Status = SUCCESS
        if short:
            status = self.rejection(short, 0)
            outline = Outline(status.code, status.reasons, self.name, is_permanent=kind >= _LACKS)
        return _OUTLINES.setdefault((self._rules_out_excess, kind), outline)

    def _has_disabled_sidecars(self, pod: Pod) -> bool:
        return not self._behavior.sidecar_containers and any(map(is_sidecar, pod.spec.init_containers))

    def rejection(self, shortfalls: list[Shortfall], num_pods: int) -> Status:
        """Return the status of a node with ``num_pods`` pods on which these resources are insufficient."""
        is_hopeless = self._rules_out_excess and any(shortfall.exceeds_node for shortfall in shortfalls)
        return Status(
            Code.UNSCHEDULABLE_AND_UNRESOLVABLE if is_hopeless else Code.UNSCHEDULABLE,
            [_reason(shortfall.resource) for shortfall in shortfalls],
            self.name,
            details.InsufficientResources(shortfalls, pods=num_pods),
        )

    def shortfalls(self, requested: Resource, node_info: NodeInfo) -> list[Shortfall]:
        """Return what is insufficient, in the order of upstream's reasons; extended resources sorted by name."""
        allocatable, used = node_info.allocatable, node_info.requested
        short: list[Shortfall] = []
        # Written out, because this runs for every node of a big cluster.
        if node_info.num_pods + 1 > allocatable.allowed_pod_number:
            short.append(Shortfall(PODS, 1, node_info.num_pods, allocatable.allowed_pod_number))
        if (want := requested.milli_cpu) > 0 and want > (total := allocatable.milli_cpu) - used.milli_cpu:
            short.append(Shortfall(CPU, want, used.milli_cpu, total, want > total))
        if (want := requested.memory) > 0 and want > (total := allocatable.memory) - used.memory:
            short.append(Shortfall(MEMORY, want, used.memory, total, want > total))
        if (want := requested.ephemeral_storage) > 0:
            total = allocatable.ephemeral_storage
            if want > total - used.ephemeral_storage:
                short.append(Shortfall(EPHEMERAL_STORAGE, want, used.ephemeral_storage, total, want > total))
        for name in sorted(requested.scalar):
            want, total, have = requested.scalar[name], allocatable.scalar.get(name, 0), used.scalar.get(name, 0)
            is_short = want and want > total - have and not self.is_ignored(name)
            if is_short and not self._is_handled_by_devices(name, requested, allocatable):
                short.append(Shortfall(name, want, have, total, want > total))
        return short

    def is_ignored(self, name: str) -> bool:
        """Return whether the configuration ignores the resource."""
        if not self._ignored and not self._ignored_groups:
            return False
        return is_extended_resource(name) and (
            name in self._ignored or name.split("/", maxsplit=1)[0] in self._ignored_groups
        )

    def may_be_backed_by_devices(self, name: str) -> bool:
        """Return whether nodes that do not offer the resource may be accepted nevertheless."""
        return self._behavior.dra_extended_resource and (
            name in self._device_resources or self._behavior.leaves_unlisted_resources_to_devices
        )

    def _is_handled_by_devices(self, name: str, requested: Resource, allocatable: Resource) -> bool:
        """Return whether devices may provide the resource, so that the node is not rejected for it."""
        if not self.may_be_backed_by_devices(name):
            return False
        if not self._behavior.leaves_unlisted_resources_to_devices:
            return allocatable.scalar.get(name, 0) <= 0
        # Up to 1.34, device classes are looked up only for a pod with extended resources. If they are not, every other
        # scalar resource that the node does not list, such as huge pages, is left to DynamicResources.
        is_cached = any(want and is_extended_resource(each) for each, want in requested.scalar.items())
        return name not in allocatable.scalar and (name in self._device_resources or not is_cached)

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
        """Return limits for requests and the number of pods, compared with what is allocatable."""
        from kpreempt.schedulers.kube.bulk.limits import resource_limits  # noqa: PLC0415

        requested = state.read(STATE_KEY)
        if not isinstance(requested, Resource):
            return None
        names = (CPU, MEMORY, EPHEMERAL_STORAGE, *sorted(requested.scalar))
        requested = {name: requested.amount(name) for name in names if requested.amount(name) > 0}
        if any(map(self.may_be_backed_by_devices, requested)):
            return None
        counted = {name: amount for name, amount in requested.items() if not self.is_ignored(name)}
        return resource_limits(self.name, self.rejection, counted, table, nodes)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Compute the requests with which the pod counts in scores."""
        state.write(_PRE_SCORE_KEY, self._scorer.requests_of(pod))
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return how well the node's fill level suits the strategy, 0 to 100."""
        requests = state.read(_PRE_SCORE_KEY)
        # Without PreScore, the requests are computed here.
        return self._scorer.score(requests if isinstance(requests, list) else self._scorer.requests_of(pod), node_info)

    def score_all(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> list[int]:
        """Return the same for many nodes, in columns if the cluster is big enough."""
        requests = state.read(_PRE_SCORE_KEY)
        found = None
        if self._handle.tables is not None and isinstance(requests, list):
            from kpreempt.schedulers.kube.bulk.score_columns import scores_at_once  # noqa: PLC0415

            found = scores_at_once(self._scorer, requests, self._handle.tables.amounts_of(nodes))
        return [self.score(state, pod, each) for each in nodes] if found is None else found


def default_args(args: Mapping[str, Any], behavior: Behavior) -> dict[str, Any]:
    """Return the arguments with defaults as loading sets them (``apis/config/v1/defaults.go``)."""
    strategy = dict(args.get("scoringStrategy", {"type": "LeastAllocated"}))
    strategy = {"type": "", **strategy, "resources": weighted_resources(strategy.get("resources"))}
    return {**args, "scoringStrategy": strategy}


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path``, which upstream checks only when the plugin is created.

    Upstream lists the plugin under a name that no plugin has.
    """
    problems = [
        invalid(f"{child(path, 'ignoredResources')}[{index}]", name, problem)
        for index, name in enumerate(args.get("ignoredResources", []))
        for problem in label_key_problems(name)
    ]
    for index, group in enumerate(args.get("ignoredResourceGroups", [])):
        location = f"{child(path, 'ignoredResourceGroups')}[{index}]"
        if "/" in group:
            problems.append(invalid(location, group, "resource group name can't contain '/'"))
        problems += [invalid(location, group, problem) for problem in label_key_problems(group)]
    return problems + _scoring_strategy(child(path, "scoringStrategy"), args["scoringStrategy"], behavior)


def _scoring_strategy(path: str, strategy: Mapping[str, Any], behavior: Behavior) -> list[str]:
    kind, ratio_path = strategy["type"], child(path, "requestedToCapacityRatio")
    problems = [] if kind in _STRATEGIES else [unsupported(child(path, "type"), kind, _STRATEGIES)]
    for index, resource in enumerate(strategy["resources"]):
        name, weight = resource.get("name", ""), resource.get("weight", 0)
        if not 0 < weight <= 100:
            detail = f"resource weight of {name} not in valid range (0, 100]"
            problems.append(invalid(f"{path}.resources[{index}].weight", weight, detail))
    ratio = strategy.get("requestedToCapacityRatio")
    names_utilization = behavior.reports_utilization_values
    if not behavior.checks_strategies_strictly:
        shape = (ratio or {}).get("shape", [])
        of_scheduling_key = shape_problems(child(path, "shape"), shape, names_utilization=names_utilization)
        return problems + (of_scheduling_key if ratio is not None else [])
    if kind != "RequestedToCapacityRatio":
        if ratio is not None:
            problems.append(forbidden(ratio_path, "must be nil when type is not RequestedToCapacityRatio"))
    elif ratio is None:
        problems.append(required(ratio_path, "must be specified when type is RequestedToCapacityRatio"))
    else:
        problems += shape_problems(child(ratio_path, "shape"), ratio.get("shape", []))
    return problems


@cache
def _reason(resource: str) -> str:
    return REASON_TOO_MANY_PODS if resource == PODS else f"Insufficient {resource}"


def _strings(value: object) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list) else []


def frees_resources(pod: Pod, old: Pod | None, new: Pod | None) -> bool:
    """Return whether a pod left its node, or now requests less there of a resource that this one requests."""
    if old is None:
        return False
    if new is None:
        return has_position(old)
    if is_same(new, pod):
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_requests(old), pod_requests(new)
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in pod_requests(pod).items())


def has_more_free(pod: Pod, old: Node | None, new: Node | None) -> bool:
    """Return whether the pod would fit on the empty node, and more of what it requests is free than before."""
    if new is None:
        return False
    requests = {name: amount for name, amount in pod_requests(pod).items() if amount}
    after = _allocatable(new)
    if after.get("pods", 0) <= 0 or any(after.get(name, 0) < amount for name, amount in requests.items()):
        return False
    if old is None:
        return True
    before = _allocatable(old)
    return any(after.get(name, 0) > before.get(name, 0) for name in ("pods", *requests))


def _allocatable(node: Node) -> dict[str, int]:
    return {name: amount.nano for name, amount in node.status.allocatable.items()}


PLUGIN = in_tree(
    NodeResourcesFit,
    unmodeled="placementScore",
    args={
        "ignoredResources": STRINGS,
        "ignoredResourceGroups": STRINGS,
        "scoringStrategy": Struct(
            "ScoringStrategy",
            {
                "type": STRING,
                "resources": RESOURCES,
                "requestedToCapacityRatio": Struct("RequestedToCapacityRatioParam", {"shape": SHAPE}),
            },
        ),
    },
    default_args=default_args,
    making_problems=arg_problems,
    awaits=lambda: [
        on_pod(Action.DELETE | Action.UPDATE_POD_SCALE_DOWN, frees_resources),
        on_node(Action.ADD | Action.UPDATE_NODE_ALLOCATABLE, has_more_free),
        on("DeviceClass", WRITTEN),
    ],
)
