"""The rules of kube-scheduler 1.18 (v1.18.19), in the order in which a scheduling cycle applies them.

The predicates of a Policy file, or the default profile, determine the filter plugins. Each predicate maps to one or
more plugins (``plugins/legacy_registry.go`` and ``factory.go``). They run in predicate order, which differs from the
default profile: topology spread comes before pod affinity. Two predicates are added even if the file omits them.

Preemption follows ``core/generic_scheduler.go`` and ``util/utils.go``. A pod that has not started counts as starting at
the moment of each comparison: later than all started pods, and of two such pods the one compared first is more
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
from kpreempt.schedulers.budgets import SelectingBudgets, claimed_in_order
from kpreempt.schedulers.choice import default_criteria
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
# Placeholders for plugins that are created from the settings.
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
# An older name that is still accepted.
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
    """Return the plugins for a Policy file or, without one, those of the default profile.

    Resources that are ``ignored`` are left to extenders. Raises ``ConfigurationError`` if the real scheduler would
    exit.
    """
    labels, absent = NodeLabel(), frozenset() if gates[EVEN_PODS_SPREAD] else frozenset((EVEN_PODS_SPREAD,))
    if policy is None:
        plugins = [each for each in _BY_DEFAULT if not (absent and each is _SPREAD)]
    else:
        if policy.predicates is None:
            names = _PLUGINS.keys() - _NOT_BY_DEFAULT - absent
        else:
            names = {_name_of(each, labels, absent) for each in policy.predicates} | _MANDATORY
        plugins = [plugin for name, group in _PLUGINS.items() if name in names for plugin in group]
    for plugin in plugins:
        if plugins.count(plugin) > 1:
            raise ConfigurationError(
                f'plugin "{plugin.name}" already registered as "FilterPlugin"',
                hint="two predicates of the Policy file map to this plugin; GeneralPredicates maps to four",
            )
    made = {_LABELS: labels, _RESOURCES_FIT: NodeResourcesFit(counts_overhead=gates["PodOverhead"], ignored=ignored)}
    return [made.get(each, each) for each in plugins]


def _name_of(stated: Predicate, labels: NodeLabel, absent: frozenset[str]) -> str:
    """Return the predicate's name for an entry, adding its labels to ``labels``."""
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
    """Mark evictions that violate a PDB (``filterPodsWithPDBViolation``), with the actual use of budgets.

    Pods that a budget already counts as disrupted are not exempt.
    """
    violations = _violations([budgets.selecting(info.pod) for info in pods])
    taken = claimed_in_order(budgets.selecting(info.pod) for info in pods)
    return list(map(PodWithBudgets, pods, violations, taken))


def _violations(covering: Sequence[Sequence[PodDisruptionBudget]]) -> list[bool]:
    """Return for each pod, given its budgets, whether its eviction violates one.

    Each pod uses one disruption of its budgets in turn, until it reaches an exhausted one. It violates that budget, and
    does not use the rest.
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
    """Return whether another order of budgets changes the violations; with five or more budgets not all are tried."""
    covering = [budgets.selecting(info.pod) for info in pods]
    shared = list({budget.key: None for each in covering if len(each) > 1 for budget in each})
    in_input_order = _violations(covering) if shared else []
    for order in islice(permutations(shared), _MAX_ORDERS if shared else 0):
        # A pod with a single budget is independent of the order.
        ordered = [each if len(each) < 2 else sorted(each, key=lambda it: order.index(it.key)) for each in covering]
        if _violations(ordered) != in_input_order:
            return True
    return False


def assumptions_about_candidates(cluster: Cluster, pod: PodInfo, nodes: Sequence[str]) -> list[Assumption]:
    """Return nodes on which the order of budgets, random in 1.18, decides what counts as a violation."""
    importance = more_important(cluster.now)
    decided = []
    for node in nodes:
        lower = [info for info in cluster.by_name[node].pods if info.priority < pod.priority]
        if depends_on_order(sorted_as_before_go_1_19(lower, importance), cluster.budgets):
            decided.append(node)
    if not decided:
        return []
    message = "several cover one pod; 1.18 checks them in random order (here: input order), which decides"
    place = f"{len(decided)} nodes, including {decided[0]}" if len(decided) > 1 else f"node {decided[0]}"
    field = "status.disruptionsAllowed"
    return [Assumption("PodDisruptionBudgets", field, f"on {place}, {message}", AssumptionKind.UNCERTAIN)]


class Version118(Version):
    """1.18: filter plugins whose status shows if evictions may help, PDBs that are counted down, and start times.

    ``never_preempts`` is the gate NonPreemptingPriority, without which ``preemptionPolicy: Never`` has no effect.
    Without ``stops_at_first`` (``alwaysCheckAllPredicates`` of a Policy file) all plugins report their reasons.
    """

    dialect = DIALECT
    check_pod = staticmethod(check_claims)
    budget_rule = staticmethod(count_budgets)
    importance = staticmethod(more_important)
    criteria = staticmethod(default_criteria)
    # A pod that is on a node in the scheduler's cache but not in the API server: it waits at Permit.
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
        """Configure the plugins that the file's predicates map to, or those of the default profile."""
        return cls(
            plugins_of(policy, gates, ignored),
            counts_overhead=gates["PodOverhead"],
            never_preempts=gates["NonPreemptingPriority"],
            stops_at_first=policy is None or not policy.always_check_all_predicates,
        )

    def requests(self, pod: Pod) -> Amounts:
        """Return the containers' or the largest init container's requests, plus overhead."""
        return requests_of(pod, counts_overhead=self._counts_overhead)

    def prepare_pod(self, cluster: Cluster, pod: PodInfo) -> CycleState:
        return run_pre_filters(self.plugins, pod, cluster)

    def extender_rejection(self, extender: str, reason: str) -> Status:
        """Return Unschedulable, with the extender's message if it has one."""
        return Status(Code.UNSCHEDULABLE, [reason] if reason else [], extender)

    def may_help(self, status: Status) -> bool:
        """Return whether the status is not UnschedulableAndUnresolvable."""
        return status.code != Code.UNSCHEDULABLE_AND_UNRESOLVABLE

    def eligibility(self, cluster: Cluster, pod: PodInfo) -> Eligibility:
        """Check ``preemptionPolicy: Never`` if its gate is on, then as in other versions."""
        if self._never_preempts and pod.pod.spec.preemption_policy == "Never":
            return Eligibility(False, REASON_NEVER)
        return super().eligibility(cluster, pod)


VERSION = Version118
