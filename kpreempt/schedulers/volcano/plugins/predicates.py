"""predicates: the filters of Kubernetes 1.25 (``plugins/predicates/predicates.go`` of Volcano v1.8.0)."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.framework.cycle_state import CycleState
from kpreempt.schedulers.kube.framework.interface import FilterPlugin, PluginError, PreFilterPlugin
from kpreempt.schedulers.kube.framework.node_info import NodeInfo
from kpreempt.schedulers.kube.plugins.node_affinity import NodeAffinity
from kpreempt.schedulers.kube.plugins.node_ports import NodePorts
from kpreempt.schedulers.kube.plugins.node_unschedulable import NodeUnschedulable
from kpreempt.schedulers.kube.plugins.pod_topology_spread.plugin import PodTopologySpread
from kpreempt.schedulers.kube.plugins.taint_toleration import TaintToleration
from kpreempt.schedulers.kube.plugins.volume_zone import VolumeZone
from kpreempt.schedulers.volcano.cache import Node, Task
from kpreempt.schedulers.volcano.configuration import PluginOption
from kpreempt.schedulers.volcano.kube_view import PodAffinity, VolumeLimits, without_sidecars
from kpreempt.schedulers.volcano.session import PredicateError, Session, Vote
from kpreempt.verdict.status import SUCCESS, Code, Status


class Predicates:
    """The enabled filters, with their state for the current task."""

    def __init__(self, session: Session, option: PluginOption) -> None:
        self._session = session
        handle = session.view.handle
        self._caches = option.boolean("predicate.CacheEnable", False)
        self._cached: dict[tuple[str, str], bool] = {}
        self._proportional = _proportional(option)
        # Nodes that reject no pod except by the pod's own constraints.
        self._open_nodes = frozenset(
            node_info.name
            for node_info in session.view.state.node_infos
            if not node_info.node.spec.taints and not node_info.node.spec.unschedulable
        )
        self._stable: list[FilterPlugin] = [NodeUnschedulable({}, handle)]
        if option.boolean("predicate.NodeAffinityEnable", True):
            self._stable.append(NodeAffinity({}, handle))
        if option.boolean("predicate.TaintTolerationEnable", True):
            self._stable.append(TaintToleration({}, handle))
        self._others: list[FilterPlugin] = []
        if option.boolean("predicate.NodePortsEnable", True):
            self._others.append(NodePorts({}, handle))
        if option.boolean("predicate.PodAffinityEnable", True):
            self._others.append(PodAffinity(handle))
        if option.boolean("predicate.NodeVolumeLimitsEnable", True):
            self._others.append(VolumeLimits({}, handle))
        if option.boolean("predicate.VolumeZoneEnable", True):
            self._others.append(VolumeZone({}, handle))
        if option.boolean("predicate.PodTopologySpreadEnable", True):
            self._others.append(PodTopologySpread({}, handle))
        self._state = CycleState()
        self._pod = Pod()
        self._names_nodes = False
        self._active: list[FilterPlugin] = []

    def prepare(self, task: Task) -> None:
        """Run pre-filters for a pod; raise ``PredicateError``."""
        self._state, self._active, self._pod = CycleState(), [], without_sidecars(task.pod)
        affinity = self._pod.spec.affinity.node_affinity if self._pod.spec.affinity else None
        # Whether the pod restricts the nodes it can run on.
        self._names_nodes = bool(self._pod.spec.node_selector) or (
            affinity is not None and affinity.required is not None
        )
        for plugin in self._others:
            status = SUCCESS
            if isinstance(plugin, PreFilterPlugin):
                _, status = plugin.pre_filter(self._state, self._pod, self._session.view.state.node_infos)
            if status.is_skip:
                continue
            if not status.is_success:
                raise PredicateError(f"plugin {plugin.name} pre-predicates failed {status.message}")
            self._active.append(plugin)

    def check(self, task: Task, node: Node) -> list[Status]:
        """Return the status of every filter; raise ``PredicateError`` if one returns an error."""
        node_info = self._session.view.state.by_name[node.name]
        statuses = []
        if node.allocatable.max_tasks <= node_info.num_pods:
            reason = f"Task <{task.key}> on Node <{node.name}> failed, reason: node(s) pod number exceeded"
            statuses.append(Status(Code.UNSCHEDULABLE, [reason], plugin="predicates"))
        statuses += self._check_stable(task, node_info)
        statuses += [self._filter(plugin, node_info) for plugin in self._active]
        # Keep CPU and memory free for idle scarce resources; raise ``PredicateError``.
        if not any((task.request.scalars or {}).get(name, 0.0) > 0 for name, _, _ in self._proportional):
            for name, cpu_rate, memory_rate in self._proportional:
                idle = (node.idle.scalars or {}).get(name)
                if idle is None:
                    continue
                cpu, memory = node.idle.cpu - task.request.cpu, node.idle.memory - task.request.memory
                if cpu < idle * cpu_rate or memory < idle * memory_rate * 1000 * 1000:
                    raise PredicateError(f"proportional of resource {name} check failed")
        return statuses

    def _check_stable(self, task: Task, node_info: NodeInfo) -> list[Status]:
        """Run filters that depend only on the node. With the cache they run once for all tasks of a template.

        Upstream caches whether they ran without error, so a rejection counts only once.
        """
        if not self._caches and not self._names_nodes and node_info.name in self._open_nodes:
            return []
        key = (node_info.name, task.pod.metadata.annotations.template_uid if task.pod.metadata.annotations else "")
        if self._caches and key in self._cached:
            if not self._cached[key]:
                raise PredicateError("plugin equivalence cache predicates failed")
            return []
        has_run = False
        try:
            statuses = [self._filter(plugin, node_info) for plugin in self._stable]
            has_run = True
        finally:
            if self._caches and key[1]:
                self._cached[key] = has_run
        return statuses

    def _filter(self, plugin: FilterPlugin, node_info: NodeInfo) -> Status:
        try:
            status = plugin.filter(self._state, self._pod, node_info)
        except PluginError as error:
            status = Status(Code.ERROR, [str(error)])
        if not status.is_success and not status.is_rejected:
            raise PredicateError(f"plugin {plugin.name} predicates failed {status.message}")
        return status.of_plugin(plugin.name)


def open_predicates(session: Session, option: PluginOption) -> None:
    """Register predicates' functions."""
    plugin = Predicates(session, option)
    session.register(Vote.PRE_PREDICATE, option.name, plugin.prepare)
    session.register(Vote.PREDICATE, option.name, plugin.check)
    session.on_change(session.view.add, session.view.remove)


def _proportional(option: PluginOption) -> Sequence[tuple[str, float, float]]:
    """Return the scarce resources, each with the CPU and memory to keep free per unit."""
    if not option.boolean("predicate.ProportionalEnable", False):
        return ()

    def rate(key: str) -> float:
        given = option.number(key, 1.0)
        return 1.0 if given < 0 else given

    names = sorted({name.strip() for name in option.text("predicate.resources").split(",")} - {""})
    prefix = "predicate.resources."
    return [(name, rate(f"{prefix}{name}.cpu"), rate(f"{prefix}{name}.memory")) for name in names]
