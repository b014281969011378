"""The rules of kube-scheduler 1.18 (v1.18.19), in the order in which a scheduling cycle comes to them.

Which filter plugins run is decided by the predicates of a Policy file, or by the default profile. Each predicate stands
for one plugin or more (``plugins/legacy_registry.go`` and ``factory.go``). They run in the order of the predicates,
which is not that of the default profile: the topology spread comes before the pod affinity. Two predicates come even if
the file leaves them out.

Preemption follows ``core/generic_scheduler.go`` and ``util/utils.go``. A pod that has not started counts as starting at
the moment of each comparison: later than all that have, and of two such pods the one that is compared first is the more
important.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import islice, permutations
from typing import Self

from kpreempt.errors import ConfigurationError
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.schedulers.budgets import SelectingBudgets, taken_in_turn
from kpreempt.schedulers.choice import usual_criteria
from kpreempt.schedulers.extender_protocol import V1_18
from kpreempt.schedulers.go_sort import sorted_as_before_go_1_19
from kpreempt.schedulers.legacy.base.configuration import (
    CONFIGURATION_GROUP,
    PRIORITIES,
    SERVICE_AFFINITY,
    Dialect,
    Policy,
    Predicate,
    no_service_affinity,
    type_not_found,
)
from kpreempt.schedulers.legacy.base.node_info import Accounting, Amounts, Cluster, PodInfo
from kpreempt.schedulers.legacy.base.predicates import (
    Filter,
    Importance,
    PodWithBudgets,
    addressed_ports,
    check_claims,
)
from kpreempt.schedulers.legacy.base.version import Version, Words
from kpreempt.schedulers.legacy.v1_18.filters import (
    NODE_AFFINITY,
    NODE_NAME,
    NODE_PORTS,
    NODE_UNSCHEDULABLE,
    TAINT_TOLERATION,
    VOLUME_RESTRICTIONS,
    InterPodAffinity,
    NodeLabel,
    NodeResourcesFit,
    PodTopologySpread,
    is_scalar,
    requests_of,
)
from kpreempt.schedulers.legacy.v1_18.framework import CycleState, FilterPlugin, run_pre_filters
from kpreempt.schedulers.legacy.v1_18.volumes import (
    AZURE_DISK_LIMITS,
    CINDER_LIMITS,
    EBS_LIMITS,
    GCE_PD_LIMITS,
    CSILimits,
    VolumeBinding,
    VolumeZone,
    order_assumptions,
)
from kpreempt.verdict import Assumption, AssumptionKind, Code, Eligibility, Status

LABEL_PRESENCE = "CheckNodeLabelPresence"
EVEN_PODS_SPREAD = "EvenPodsSpread"
_RESOURCES = "PodFitsResources"

DIALECT = Dialect(
    algorithm="kube-1.18",
    gates={EVEN_PODS_SPREAD: True, "NonPreemptingPriority": False, "PodOverhead": True},
    api_versions=(f"{CONFIGURATION_GROUP}/v1alpha1", f"{CONFIGURATION_GROUP}/v1alpha2"),
    states_extenders=True,
    priorities=PRIORITIES | {"EvenPodsSpreadPriority", "NodeLabel", "RequestedToCapacityRatio", "ServiceAffinity"},
    priority_arguments=("serviceAntiAffinity", "labelPreference", "requestedToCapacityRatioArguments"),
    quotes='"{}"'.format,
    names_fields=True,
    protocol=V1_18,
    ignorable_last=True,
)

_CSI_LIMITS, _POD_AFFINITY, _SPREAD = CSILimits(), InterPodAffinity(), PodTopologySpread()
_VOLUME_BINDING, _VOLUME_ZONE = VolumeBinding(), VolumeZone()
# They stand for those that are made as the settings want them.
_RESOURCES_FIT, _LABELS = NodeResourcesFit(), NodeLabel()
# In the order in which they run.
_PLUGINS: dict[str, tuple[FilterPlugin, ...]] = {
    "CheckNodeUnschedulable": (NODE_UNSCHEDULABLE,),
    "GeneralPredicates": (_RESOURCES_FIT, NODE_NAME, NODE_PORTS, NODE_AFFINITY),
    "HostName": (NODE_NAME,),
    "PodFitsHostPorts": (NODE_PORTS,),
    "MatchNodeSelector": (NODE_AFFINITY,),
    _RESOURCES: (_RESOURCES_FIT,),
    "NoDiskConflict": (VOLUME_RESTRICTIONS,),
    "PodToleratesNodeTaints": (TAINT_TOLERATION,),
    LABEL_PRESENCE: (_LABELS,),
    SERVICE_AFFINITY: (),
    "MaxEBSVolumeCount": (EBS_LIMITS,),
    "MaxGCEPDVolumeCount": (GCE_PD_LIMITS,),
    "MaxCSIVolumeCountPred": (_CSI_LIMITS,),
    "MaxAzureDiskVolumeCount": (AZURE_DISK_LIMITS,),
    "MaxCinderVolumeCount": (CINDER_LIMITS,),
    "CheckVolumeBinding": (_VOLUME_BINDING,),
    "NoVolumeZoneConflict": (_VOLUME_ZONE,),
    EVEN_PODS_SPREAD: (_SPREAD,),
    "MatchInterPodAffinity": (_POD_AFFINITY,),
}
_MANDATORY = frozenset(("PodToleratesNodeTaints", "CheckNodeUnschedulable"))
_NOT_BY_DEFAULT = frozenset(
    (
        "HostName",
        "PodFitsHostPorts",
        "MatchNodeSelector",
        _RESOURCES,
        LABEL_PRESENCE,
        SERVICE_AFFINITY,
        "MaxCinderVolumeCount",
    )
)
# An older name that is still taken.
_ALIASES = {"PodFitsPorts": "PodFitsHostPorts"}


# Those of the default profile, in its order (``algorithmprovider/registry.go``).
_BY_DEFAULT: tuple[FilterPlugin, ...] = (
    NODE_UNSCHEDULABLE,
    _RESOURCES_FIT,
    NODE_NAME,
    NODE_PORTS,
    NODE_AFFINITY,
    VOLUME_RESTRICTIONS,
    TAINT_TOLERATION,
    EBS_LIMITS,
    GCE_PD_LIMITS,
    _CSI_LIMITS,
    AZURE_DISK_LIMITS,
    _VOLUME_BINDING,
    _VOLUME_ZONE,
    _POD_AFFINITY,
    _SPREAD,
)


def plugins_of(policy: Policy | None, gates: Mapping[str, bool], ignored: frozenset[str]) -> list[FilterPlugin]:
    """The plugins for a Policy file, or without one those of the default profile.

    Resources that are ``ignored`` are left to extenders.
    Raises ``ConfigurationError`` where the real scheduler ends at once.
    """
    labels, absent = NodeLabel(), frozenset() if gates[EVEN_PODS_SPREAD] else frozenset((EVEN_PODS_SPREAD,))
    if policy is None:
        plugins = [each for each in _BY_DEFAULT if not (absent and each is _SPREAD)]
    else:
        if policy.predicates is None:
            names = _PLUGINS.keys() - _NOT_BY_DEFAULT - absent
        else:
            names = {_name_of(each, labels, absent) for each in policy.predicates} | _MANDATORY
        plugins = [plugin for name, its in _PLUGINS.items() if name in names for plugin in its]
    for plugin in plugins:
        if plugins.count(plugin) > 1:
            raise ConfigurationError(
                f'plugin "{plugin.name}" already registered as "FilterPlugin"',
                hint="two predicates of the Policy file stand for it; GeneralPredicates stands for four",
            )
    made = {_LABELS: labels, _RESOURCES_FIT: NodeResourcesFit(counts_overhead=gates["PodOverhead"], ignored=ignored)}
    return [made.get(each, each) for each in plugins]


def _name_of(stated: Predicate, labels: NodeLabel, absent: frozenset[str]) -> str:
    """The name of the predicate that an entry asks for; its labels are added to ``labels``."""
    name = _ALIASES.get(stated.name, stated.name)
    if name in _PLUGINS and name not in absent:
        return name
    argument = stated.argument
    if argument is None:
        raise type_not_found("Predicate", DIALECT.quotes(stated.name))
    presence = argument.labels_presence
    if presence is None:
        raise no_service_affinity(stated.name)
    (labels.present if presence.presence else labels.absent).extend(presence.labels or [])
    return LABEL_PRESENCE


REASON_NEVER = "not eligible due to preemptionPolicy=Never."

# All orders of four budgets.
_MAX_ORDERS = 24


def more_important(now: datetime) -> Importance:
    """``MoreImportantPod``: the higher priority, then the earlier start."""

    def is_more_important(one: PodInfo, other: PodInfo) -> bool:
        if one.priority != other.priority:
            return one.priority > other.priority
        if one.start is None and other.start is None:
            return True
        return (one.start or now) < (other.start or now)

    return is_more_important


def count_budgets(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> list[PodWithBudgets]:
    """Which evictions violate a budget (``filterPodsWithPDBViolation``), with what they really take from which.

    Pods that a budget counts as disrupted already are not spared.
    """
    violations = _violations([budgets.selecting(info.pod) for info in pods])
    taken = taken_in_turn(budgets.selecting(info.pod) for info in pods)
    return list(map(PodWithBudgets, pods, violations, taken))


def _violations(covering: Sequence[Sequence[PodDisruptionBudget]]) -> list[bool]:
    """For each pod, given the budgets that cover it, whether its eviction violates one.

    Each pod takes one from its budgets in turn until it comes to one of which nothing is left. That one it violates,
    and does not ask the rest.
    """
    left: dict[str, int] = {}
    violations = []
    for budgets in covering:
        violates = False
        for budget in budgets:
            remaining = left.get(budget.key, budget.allowed)
            if remaining <= 0:
                violates = True
                break
            left[budget.key] = remaining - 1
        violations.append(violates)
    return violations


def depends_on_order(pods: Sequence[PodInfo], budgets: SelectingBudgets) -> bool:
    """Whether another order of the budgets makes other evictions violations; with five and more not all are tried."""
    covering = [budgets.selecting(info.pod) for info in pods]
    shared = list({budget.key: None for each in covering if len(each) > 1 for budget in each})
    as_given = _violations(covering) if shared else []
    for order in islice(permutations(shared), _MAX_ORDERS if shared else 0):
        # A pod under one budget has it alone in any order.
        ordered = [each if len(each) < 2 else sorted(each, key=lambda it: order.index(it.key)) for each in covering]
        if _violations(ordered) != as_given:
            return True
    return False


def assumptions_about_candidates(cluster: Cluster, pod: PodInfo, nodes: Sequence[str]) -> list[Assumption]:
    """Nodes where the order of the budgets, which is random in 1.18, decides what counts as a violation."""
    importance = more_important(cluster.now)
    decided = []
    for node in nodes:
        lower = [info for info in cluster.by_name[node].pods if info.priority < pod.priority]
        if depends_on_order(sorted_as_before_go_1_19(lower, importance), cluster.budgets):
            decided.append(node)
    if not decided:
        return []
    message = "several cover one pod; 1.18 takes them in a random order, here in that of the input, and it decides"
    where = f"{len(decided)} nodes, {decided[0]} among them" if len(decided) > 1 else f"node {decided[0]}"
    field = "status.disruptionsAllowed"
    return [Assumption("PodDisruptionBudgets", field, f"on {where}, {message}", AssumptionKind.UNCERTAIN)]


class Version118(Version):
    """1.18: filter plugins whose status says whether evictions may help, budgets that are counted down, start times.

    ``never_preempts`` is the gate NonPreemptingPriority, without which ``preemptionPolicy: Never`` means nothing.
    Without ``stops_at_first`` (``alwaysCheckAllPredicates`` of a Policy file) all plugins tell their reasons.
    """

    dialect = DIALECT
    check_pod = staticmethod(check_claims)
    budget_rule = staticmethod(count_budgets)
    importance = staticmethod(more_important)
    criteria = staticmethod(usual_criteria)
    # A pod that the scheduler's cache has on a node while the API server has not: it waits at Permit.
    is_waiting = staticmethod(
        lambda pod: any(each.type == "PodScheduled" and each.status == "False" for each in pod.status.conditions)
    )
    assumptions_about_candidates = staticmethod(assumptions_about_candidates)
    assumptions_about = staticmethod(order_assumptions)
    words = Words(
        nomination="status.nominatedNodeName",
        preempted="Preempted by {pod} on node {node}",
        reports_failure_first=False,
        event_limit=1024,
    )

    def __init__(
        self,
        plugins: Sequence[FilterPlugin] | None = None,
        *,
        counts_overhead: bool = True,
        never_preempts: bool = False,
        stops_at_first: bool = True,
    ) -> None:
        gates = {**DIALECT.gates, "PodOverhead": counts_overhead}
        self.plugins = plugins_of(None, gates, frozenset()) if plugins is None else list(plugins)
        self.filters = [Filter(plugin.name, plugin.check) for plugin in self.plugins]
        occupied = partial(requests_of, counts_overhead=counts_overhead)
        self.accounting = Accounting(is_scalar, occupied, addressed_ports)
        self.stops_at_first = stops_at_first
        self._counts_overhead = counts_overhead
        self._never_preempts = never_preempts

    @classmethod
    def configured(cls, gates: Mapping[str, bool], policy: Policy | None, ignored: frozenset[str]) -> Self:
        """With the plugins that the file's predicates stand for, or those of the default profile."""
        return cls(
            plugins_of(policy, gates, ignored),
            counts_overhead=gates["PodOverhead"],
            never_preempts=gates["NonPreemptingPriority"],
            stops_at_first=policy is None or not policy.always_check_all_predicates,
        )

    def requests(self, pod: Pod) -> Amounts:
        """Containers or the largest init container, and the overhead."""
        return requests_of(pod, counts_overhead=self._counts_overhead)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> CycleState:
        return run_pre_filters(self.plugins, pod, cluster)

    def extender_refusal(self, extender: str, reason: str) -> Status:
        """Unschedulable, with the extender's own words if it gives any."""
        return Status(Code.UNSCHEDULABLE, [reason] if reason else [], extender)

    def may_help(self, status: Status) -> bool:
        """All but UnschedulableAndUnresolvable."""
        return status.code != Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def eligibility(self, cluster: Cluster, pod: PodInfo) -> Eligibility:
        """``preemptionPolicy: Never`` where its gate is on, then as before."""
        if self._never_preempts and pod.pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        return super().eligibility(cluster, pod)


VERSION = Version118
