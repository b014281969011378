"""VolumeBinding rejects nodes that cannot have the volumes of the pod's claims (``plugins/volumebinding``, v1.36.3).

Its score, with the StorageCapacityScoring gate, is how well the pod's storage would fill what exists. It follows
``Score`` (``plugins/volumebinding/volume_binding.go``) and ``scorer.go`` next to it, v1.36.3.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.storage import requested_storage, storage_capacity
from kpreempt.schedulers.kube.framework.arg_types import INT64, SHAPE, child, invalid
from kpreempt.schedulers.kube.framework.cycle_state import CycleState, TreeKey
from kpreempt.schedulers.kube.framework.events import WRITTEN, Action, on, on_node
from kpreempt.schedulers.kube.framework.in_tree import LimitedFilterPlugin, in_tree
from kpreempt.schedulers.kube.framework.interface import (
    MAX_NODE_SCORE,
    Handle,
    PluginArgs,
    PluginError,
    PreBindPlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ReservePlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.framework.resource_scoring import (
    MAX_CUSTOM_PRIORITY_SCORE,
    MAX_UTILIZATION,
    piecewise_linear,
    shape_problems,
)
from kpreempt.schedulers.kube.plugins.volume_binding.binder import (
    ClaimMatches,
    IllegalClaimError,
    PodClaims,
    PodVolumes,
    VolumeBinder,
    claims_of,
    hosts_of,
    problem_of_immediate,
    sort_claims,
)
from kpreempt.schedulers.kube.plugins.volume_binding.orders import OtherOrders, VolumeChoices, other_orders
from kpreempt.schedulers.kube.versions import Behavior
from kpreempt.verdict import SUCCESS, Code, Status
from kpreempt.verdict.details import VolumeConflict
from kpreempt.verdict.status import SKIP

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.limits import PluginLimits
    from kpreempt.schedulers.kube.bulk.pod_table import PodTable


REASON_UNBOUND_IMMEDIATE = "pod has unbound immediate PersistentVolumeClaims"


class BindingState:
    """The pod's claims, and the volumes found for them on each node.

    It has no ``clone``: as upstream, all copies of a cycle state share it. The result on a node depends neither on its
    pods nor on pods nominated to it, so it is the same every time.
    """

    def __init__(self, claims: PodClaims, order: Sequence[str]) -> None:
        self.matches = ClaimMatches(claims, order)
        self.by_node: dict[str, PodVolumes] = {}


_STATE_KEY = TreeKey("VolumeBinding")
_ORDER_KEY = TreeKey("VolumeBinding's order")


class VolumeBinding(PreFilterPlugin, LimitedFilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin, PreBindPlugin):
    """Claims must be bound to volumes that the node can access, or such volumes must exist or be provisionable."""

    name = "VolumeBinding"

    def __init__(self, args: PluginArgs, handle: Handle) -> None:
        self._cluster = handle.cluster
        self._binder = VolumeBinder(handle.cluster, handle.behavior)
        behavior = handle.behavior
        self._rates_new_volumes = behavior.storage_capacity_scoring
        self._shape = shape_of(args) if self._rates_new_volumes or behavior.volume_capacity_priority else None
        self._skips_idle_score = behavior.skips_idle_scores
        self._restricts_to_hosts = behavior.restricts_to_hosts_of_volumes
        # Scores are computed from what Filter found in the same cycle.
        self.is_local = self._shape is None

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        """Collect the claims; reject pods with claims that should be bound and are not; skip pods without claims."""
        try:
            claims = claims_of(pod, self._cluster)
            sorted_claims = sort_claims(claims, self._cluster)
        except IllegalClaimError as error:
            conflict = VolumeConflict(claim=error.claim, problem=error.problem)
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [str(error)], detail=conflict)
        except PluginError as error:
            return None, Status(Code.ERROR, [str(error)])
        if sorted_claims.immediate:
            first = sorted_claims.immediate[0]
            conflict = VolumeConflict(claim=first.key, problem=problem_of_immediate(first, self._cluster))
            return None, Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_UNBOUND_IMMEDIATE], detail=conflict)
        order = state.read(_ORDER_KEY)
        state.write(_STATE_KEY, BindingState(sorted_claims, order if isinstance(order, tuple) else ()))
        if not claims:
            return None, SKIP
        hosts = hosts_of(sorted_claims.bound, self._cluster) if self._restricts_to_hosts else None
        return None if hosts is None else PreFilterResult(hosts), SUCCESS

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        """Reject the node if a claim's volume is not accessible, or none is available there."""
        return self._of_node(_state_of(state), node_info)

    def _of_node(self, binding: BindingState, node_info: NodeInfo) -> Status:
        found = binding.by_node.get(node_info.name)
        if found is None:
            try:
                found = self._binder.find_pod_volumes(binding.matches, node_info.node)
            except PluginError as error:
                return Status(Code.ERROR, [str(error)])
            binding.by_node[node_info.name] = found
        if not found.conflicts:
            return SUCCESS
        reasons = found.reasons
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons, detail=found.conflicts[reasons[0]])

    def limits(self, state: CycleState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits:
        """Pods on the node do not matter, neither for bound nor for unbound claims."""
        from kpreempt.schedulers.kube.bulk.limits import node_limits  # noqa: PLC0415

        binding = _state_of(state)
        return node_limits(self.name, [self._of_node(binding, node_info) for node_info in nodes], table)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        """Skip unless the StorageCapacityScoring gate is on, or its predecessor is and there are volumes to bind."""
        if not self._skips_idle_score:
            return SUCCESS
        if self._shape is None:
            return SKIP
        binding = _state_of(state)
        has_static = any(found.bindings for found in binding.by_node.values())
        return SUCCESS if self._rates_new_volumes or has_static else SKIP

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        """Return the mean of the storage classes' scores; 0 if the pod uses no storage that can be scored."""
        found = _state_of(state).by_node.get(node_info.name)
        if self._shape is None or found is None:
            return 0
        return score(self._shape, self._use(found))

    def _use(self, found: PodVolumes) -> dict[str, StorageUse]:
        return storage_use(found if self._rates_new_volumes else found._replace(provisions=[]))

    def other_orders(self, state: CycleState, nodes: Iterable[Node], limit: int) -> OtherOrders | None:
        """Return what other orders of equal volumes would change for these nodes, after a cycle with this state.

        Returns at most ``limit`` orders. ``None`` if no order matters, or the pod reached no filter.
        """
        binding = state.read(_STATE_KEY)
        if not isinstance(binding, BindingState):
            return None
        try:
            choices = VolumeChoices(self._binder, binding.matches, self._use if self._shape is not None else None)
            return other_orders(choices, nodes, limit)
        except PluginError:
            # The cycle ends in the same way with every order.
            return None


def set_order(state: CycleState, volumes: Sequence[str]) -> None:
    """Make a cycle that starts with this state try equal volumes in the order of these names."""
    state.write(_ORDER_KEY, tuple(volumes))


def default_args(args: Mapping[str, Any], behavior: Behavior) -> dict[str, Any]:
    """Return the arguments with defaults as loading sets them (``apis/config/v1/defaults.go``)."""
    filled = {**args, "bindTimeoutSeconds": args.get("bindTimeoutSeconds", 600)}
    if behavior.storage_capacity_scoring and not filled.get("shape"):
        filled["shape"] = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    if behavior.volume_capacity_priority and not filled.get("shape"):
        filled["shape"] = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    return filled


def arg_problems(path: str, args: Mapping[str, Any], behavior: Behavior) -> list[str]:
    """List problems of the arguments at ``path`` (``apis/config/validation/validation_pluginargs.go``)."""
    timeout, shape_path = args["bindTimeoutSeconds"], child(path, "shape")
    problems = []
    if timeout < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        problems.append(invalid(child(path, "bindTimeoutSeconds"), timeout, detail))
    if behavior.storage_capacity_scoring or behavior.volume_capacity_priority:
        names = behavior.reports_utilization_values
        return problems + shape_problems(shape_path, args.get("shape", []), names_utilization=names)
    if "shape" in args:
        shape = [
            {"Utilization": point.get("utilization", 0), "Score": point.get("score", 0)} for point in args["shape"]
        ]
        gate = "VolumeCapacityPriority" if behavior.has_volume_capacity_priority else "StorageCapacityScoring"
        detail = f"unexpected field `shape`, remove it or turn on the feature gate {gate}"
        problems.append(invalid(shape_path, shape, detail))
    return problems


def _state_of(state: CycleState) -> BindingState:
    binding = state.read(_STATE_KEY)
    assert isinstance(binding, BindingState)
    return binding


PLUGIN = in_tree(
    VolumeBinding,
    args={"bindTimeoutSeconds": INT64, "shape": SHAPE},
    default_args=default_args,
    arg_problems=arg_problems,
    awaits=lambda: [
        on("StorageClass", WRITTEN),
        on("PersistentVolumeClaim", WRITTEN),
        on("PersistentVolume", WRITTEN, is_modeled=True),
        on_node(Action.ADD | Action.UPDATE_NODE_LABEL),
        on("CSINode", WRITTEN),
        on("CSIDriver", Action.UPDATE),
        on("CSIStorageCapacity", WRITTEN),
    ],
)


# Points of a piecewise linear function: utilization in percent, score of 0 to 100.
Shape = Sequence[tuple[int, int]]

DEFAULT_SHAPE: Shape = ((0, MAX_NODE_SCORE), (MAX_UTILIZATION, 0))


class StorageUse(NamedTuple):
    """What the pod requests from one storage class, and what is available, in bytes."""

    requested: int
    capacity: int


def shape_of(args: PluginArgs) -> Shape:
    """Return the configured shape, whose scores go up to 10, or the default one, which prefers empty storage."""
    points = args.get("shape")
    if not isinstance(points, Sequence) or not points:
        return DEFAULT_SHAPE
    scale = MAX_NODE_SCORE // MAX_CUSTOM_PRIORITY_SCORE
    return [(int(point.get("utilization") or 0), int(point.get("score") or 0) * scale) for point in points]


def storage_use(volumes: PodVolumes) -> dict[str, StorageUse]:
    """Return by storage class the existing volumes that the pod would use, or else what would be provisioned for it.

    Several volumes of one class come from the same pool, so its capacity counts once; existing ones add up.
    """
    use: dict[str, StorageUse] = {}
    for claim, volume in volumes.bindings:
        name = volume.spec.storage_class_name
        requested, capacity = use.get(name, (0, 0))
        use[name] = StorageUse(requested + requested_storage(claim).value, capacity + storage_capacity(volume).value)
    if volumes.bindings:
        return use
    for claim, pool in volumes.provisions:
        if pool is None:
            continue
        # Upstream dereferences the field without a check, and crashes if only the old annotation names the class.
        name = claim.spec.storage_class_name or ""
        requested, _ = use.get(name, (0, 0))
        capacity = pool.capacity.value if pool.capacity is not None else 0
        use[name] = StorageUse(requested + requested_storage(claim).value, capacity)
    return use


def score(shape: Shape, use: Mapping[str, StorageUse]) -> int:
    """Return the mean of the classes' scores, 0 without any."""
    if not use:
        return 0
    points = list(shape)
    total = 0
    for each in use.values():
        is_full = each.capacity == 0 or each.requested > each.capacity
        used = MAX_UTILIZATION if is_full else each.requested * MAX_UTILIZATION // each.capacity
        total += piecewise_linear(points, used)
    # Go's math.Round: halves away from zero.
    return math.floor(total / len(use) + 0.5)
