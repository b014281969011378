"""ClusterQueues and Workloads as Kueue's queues and cache hold them.

A ClusterQueue has quota, policies, admitted Workloads and, if it is inactive, a reason
(``pkg/cache/scheduler/clusterqueue.go`` of Kueue v0.19.2). The conditions and admission of a Workload change from cycle
to cycle; its requests stay the same (``pkg/workload/workload.go``). Times are milliseconds since the epoch, as
integers.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from kpreempt.model.kueue import (
    ADMISSION_GATED_BY,
    JOB_UID_LABEL,
    PRIORITY_BOOST,
    AdmissionCheck,
    ClusterQueue,
    PodSet,
    ResourceFlavor,
    Workload,
)
from kpreempt.model.pod import PodSpec
from kpreempt.schedulers.kueue.objects import Gate, KueueConfiguration
from kpreempt.schedulers.kueue.quota import (
    Amounts,
    FlavorResource,
    Node,
    Requests,
    pod_requests_of,
    quotas_of,
    requests_of,
    weight_of,
)
from kpreempt.schedulers.kueue.topology import DomainPods, FlavorTopology, TopologyUsage, domains_of

NEVER = "Never"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
PROVISIONING = "kueue.x-k8s.io/provisioning-request"


class Group(NamedTuple):
    """A resource group: the resources it covers, and its flavors in order."""

    covered: frozenset[str]
    flavors: list[str]


class Queue:
    """A ClusterQueue with its node in the quota tree."""

    def __init__(self, record: ClusterQueue) -> None:
        self.record = record
        self.name = record.name
        spec = record.spec
        self.node = Node(self.name, quotas_of(spec.resource_groups), weight_of(spec.fair_sharing), is_cohort=False)
        self.groups = [
            Group(frozenset(each.covered_resources), [flavor.name for flavor in each.flavors])
            for each in spec.resource_groups
        ]
        self.preemption = spec.preemption
        self.fungibility = spec.flavor_fungibility
        self.is_strict = spec.queueing_strategy == "StrictFIFO"
        self.workloads: dict[str, Info] = {}
        # Incremented when one of its Workloads leaves or changes.
        self.generation = 1
        self.topologies: dict[str, FlavorTopology] = {}
        self.is_topology_only = False
        self.inactive_because = ""
        self.has_multikueue = False
        self.provisioned_flavors: frozenset[str] = frozenset()
        self._group_of: dict[str, Group | None] = {}
        # Workloads by what they use; rebuilt after a Workload is added or removed.
        self._in_order: dict[frozenset[FlavorResource], list[Info]] = {}

    def __repr__(self) -> str:
        return self.name

    def group_of(self, resource: str) -> Group | None:
        """Return the resource group that covers a resource."""
        if resource not in self._group_of:
            self._group_of[resource] = next((each for each in self.groups if resource in each.covered), None)
        return self._group_of[resource]

    def add_admitted(self, info: Info) -> None:
        """Add a Workload, which can be preempted from now on."""
        self.workloads[info.key] = info
        self._in_order.clear()

    def remove_admitted(self, info: Info) -> None:
        """Remove a Workload."""
        del self.workloads[info.key]
        self._in_order.clear()

    def in_order(self, frs: frozenset[FlavorResource]) -> list[Info]:
        """Return the Workloads that use any of these flavors and resources, in preemption order."""
        found = self._in_order.get(frs)
        if found is None:
            # Workloads that were assigned any of these flavors for these resources.
            found = [
                info
                for info in self.workloads.values()
                if any(each.flavors.get(resource) == flavor for each in info.requests for flavor, resource in frs)
            ]
            found.sort(key=lambda each: (not each.is_evicted, each.loss_order))
            self._in_order[frs] = found
        return found

    @property
    def all_flavors(self) -> list[str]:
        """The flavors of all groups."""
        return [flavor for group in self.groups for flavor in group.flavors]

    def use(self, quota: Amounts, topology: TopologyUsage, sign: int = 1) -> None:
        """Add usage, or remove it if ``sign`` is -1."""
        if sign > 0:
            self.node.add(quota)
        else:
            self.node.remove(quota)
        for flavor, pods in topology.items():
            domains = self.topologies.get(flavor)
            if domains is not None:
                for each in pods:
                    domains.use(each, sign)

    def checks_for(self, flavors: Iterable[str]) -> set[str]:
        """Return the admission checks of a Workload that was assigned these flavors."""
        given = set(flavors)
        rules = self.record.spec.admission_checks_strategy.admission_checks
        found = set(self.record.spec.admission_checks) if given else set()
        return found | {each.name for each in rules if (given & set(each.on_flavors) if each.on_flavors else given)}

    def settle_activity(
        self,
        flavors: Mapping[str, ResourceFlavor],
        checks: Mapping[str, AdmissionCheck],
        topologies: Mapping[str, FlavorTopology],
        *,
        has_topologies: bool,
    ) -> None:
        """Determine whether the queue is active, and which of its flavors have a topology."""
        with_topology = {
            name: flavors[name].spec.topology_name
            for name in self.all_flavors
            if has_topologies and name in flavors and flavors[name].spec.topology_name
        }
        self.topologies = {name: topologies[name] for name in with_topology if name in topologies}
        self.is_topology_only = all(name in with_topology for name in self.all_flavors)
        rules = {each.name: each.on_flavors for each in self.record.spec.admission_checks_strategy.admission_checks}
        requested = sorted({*self.record.spec.admission_checks, *rules})
        by_controller: dict[str, list[str]] = {}
        for name in requested:
            if name in checks:
                by_controller.setdefault(checks[name].spec.controller_name, []).append(name)
        multikueue = by_controller.get(MULTIKUEUE, [])
        provisioning = by_controller.get(PROVISIONING, [])
        self.has_multikueue = bool(multikueue)
        self.provisioned_flavors = frozenset(
            flavor for name in provisioning for flavor in rules.get(name) or self.all_flavors
        )
        problems = [
            ("Stopped", "is stopped", self.record.spec.stop_policy != "None"),
            *_problem(
                "FlavorNotFound",
                "references missing ResourceFlavor(s)",
                [f for f in self.all_flavors if f not in flavors],
            ),
            *_problem(
                "AdmissionCheckNotFound",
                "references missing AdmissionCheck(s)",
                [c for c in requested if c not in checks],
            ),
            *_problem(
                "AdmissionCheckInactive",
                "references inactive AdmissionCheck(s)",
                [c for c in requested if c in checks and not checks[c].is_active],
            ),
            *_problem(
                "MultipleMultiKueueAdmissionChecks",
                "Cannot use multiple MultiKueue AdmissionChecks on the same ClusterQueue, found",
                multikueue if len(multikueue) > 1 else [],
            ),
            *_problem(
                "MultiKueueAdmissionCheckAppliedPerFlavor",
                "Cannot specify MultiKueue AdmissionCheck per flavor, found",
                [c for c in multikueue if rules.get(c) and set(rules[c]) != set(self.all_flavors)],
            ),
            *_problem(
                "MultiKueueWithProvisioningRequest",
                "Cannot use both MultiKueue and ProvisioningRequest AdmissionChecks together, found",
                [",".join(multikueue) + ", " + ",".join(provisioning)] if multikueue and provisioning else [],
            ),
            *(
                ("TopologyNotFound", f'there is no Topology "{topology}" for TAS flavor "{name}"', True)
                for name, topology in sorted(with_topology.items())
                if name not in topologies and not multikueue
            ),
        ]
        found = [(reason, message) for reason, message, holds in problems if holds]
        if found:
            messages = ", ".join(message for _, message in found)
            self.inactive_because = f"NotActive|{found[0][0]}|Can't admit new workloads: {messages}."


def _problem(reason: str, words: str, names: list[str]) -> list[tuple[str, str, bool]]:
    return [(reason, f"{words}: {','.join(names)}", True)] if names else []


QUOTA_RESERVED = "QuotaReserved"
ADMITTED = "Admitted"
EVICTED = "Evicted"
PREEMPTED = "Preempted"
REQUEUED = "Requeued"

_SECOND = 1000


def milliseconds(time: datetime | None) -> int:
    """Convert a time to milliseconds; no time is 0."""
    return 0 if time is None else round(time.timestamp() * _SECOND)


class Cond(NamedTuple):
    """A condition, and when its status last changed."""

    status: str
    reason: str = ""
    message: str = ""
    at: int = 0

    @property
    def is_true(self) -> bool:
        return self.status == "True"


@dataclass(slots=True)
class PodSetRequests:
    """The total requests of a pod set, and the flavors and domains assigned to it."""

    name: str
    requests: Requests
    count: int
    flavors: dict[str, str] = field(default_factory=dict)
    domains: tuple[DomainPods, ...] | None = None

    def scaled_to(self, count: int) -> PodSetRequests:
        """Return the same pod set scaled to another number of pods."""
        if self.domains is not None or self.count in (0, count):
            return PodSetRequests(self.name, dict(self.requests), self.count, self.flavors, self.domains)
        scaled = {name: _quotient(amount, self.count) * count for name, amount in self.requests.items()}
        return PodSetRequests(self.name, scaled, count, self.flavors)


@dataclass(slots=True)
class FlavorMemory:
    """The last flavor tried, by pod set and resource; -1 is the end of the list."""

    next_flavor: list[dict[str, int]]
    generation: int
    cycle: int
    scheduling_key: str | None

    @property
    def has_pending(self) -> bool:
        """Return whether some flavors were not tried."""
        return any(index != -1 for each in self.next_flavor for index in each.values())


class Info:
    """A Workload in its current state."""

    def __init__(self, workload: Workload, config: KueueConfiguration) -> None:
        self.workload = workload
        self.config = config
        self.key = workload.key
        self.uid = workload.metadata.uid
        self.namespace = workload.metadata.namespace
        self.created = milliseconds(workload.metadata.creation_timestamp)
        self.priority = workload.spec.priority or 0
        self.boost = _boost(workload, config)
        self.effective_priority = self.priority + self.boost
        self.job_uid = workload.metadata.labels.get(JOB_UID_LABEL, "")
        status = workload.status
        self.conditions: dict[str, Cond] = {
            each.type: Cond(each.status, each.reason, each.message, milliseconds(each.last_transition_time))
            for each in status.conditions
        }
        self.check_states = [each.state for each in status.admission_checks]
        self.cluster_queue = ""
        self.requests: list[PodSetRequests] = []
        self.memory: FlavorMemory | None = None
        self._usage: Amounts | None = None
        self._topology_usage: TopologyUsage | None = None
        self._shape: str | None = None
        if status.admission is None:
            self.release_quota()
        else:
            self.take(_assigned(workload, config), status.admission.cluster_queue)

    def __repr__(self) -> str:
        return self.key

    def copy(self) -> Info:
        """Return an independent copy of the current state."""
        other = Info.__new__(Info)
        other.__dict__.update(self.__dict__)
        other.conditions = dict(self.conditions)
        return other

    @property
    def pod_sets(self) -> list[PodSet]:
        return self.workload.spec.pod_sets

    def release_quota(self) -> None:
        """Drop the quota, and request what the pod sets specify."""
        counts = _counts(self.workload, self.config)
        found = []
        for pod_set in self.pod_sets:
            count = counts[pod_set.name]
            requests = {
                name: max(0, amount) * count
                for name, amount in pod_requests_of(pod_set.template.spec).items()
                if not name.startswith(self.config.exclude_resource_prefixes)
            }
            found.append(PodSetRequests(pod_set.name, requests, count))
        self.take(found, "")

    def take(self, requests: list[PodSetRequests], cluster_queue: str) -> None:
        """Take quota from a ClusterQueue."""
        self.requests, self.cluster_queue = requests, cluster_queue
        self._usage = self._topology_usage = self._shape = None

    def is_true(self, condition: str) -> bool:
        """Return whether a condition is true."""
        found = self.conditions.get(condition)
        return found is not None and found.status == "True"

    @property
    def has_quota(self) -> bool:
        return self.is_true(QUOTA_RESERVED)

    @property
    def is_evicted(self) -> bool:
        return self.is_true(EVICTED)

    @property
    def is_finished(self) -> bool:
        return self.is_true("Finished")

    @property
    def is_admissible(self) -> bool:
        """Return whether the Workload belongs in a queue."""
        reserved = self.conditions.get(QUOTA_RESERVED)
        is_on_hold = reserved is not None and reserved.status == "False" and reserved.reason == "OnHold"
        is_gated = self.config.has(Gate.ADMISSION_GATED_BY) and bool(
            self.workload.metadata.annotations.get(ADMISSION_GATED_BY)
        )
        return not (
            is_gated
            or self.is_finished
            or not self.workload.spec.active
            or self.has_quota
            or is_on_hold
            or self.is_true("WaitingForReplacementPods")
        )

    @property
    def queued_since(self) -> int:
        """The time that determines the Workload's position in its queue."""
        evicted = self.conditions.get(EVICTED)
        if evicted is not None and evicted.is_true:
            by_timeout = evicted.reason == "PodsReadyTimeout" and self.config.requeuing_timestamp == "Eviction"
            if by_timeout or evicted.reason == "AdmissionCheck":
                return evicted.at
        if not self.config.has(Gate.PRIORITY_SORTING):
            preempted = self.conditions.get(PREEMPTED)
            if preempted is not None and preempted.is_true and preempted.reason == "InCohortReclaimWhileBorrowing":
                return preempted.at + 1
        return self.created

    @property
    def loss_order(self) -> tuple[int, int, str]:
        """Sort key for preemption within a ClusterQueue: lowest priority first, then most recently admitted."""
        return self.effective_priority, -self.conditions[QUOTA_RESERVED].at, self.uid

    @property
    def usage(self) -> Amounts:
        """Usage by flavor and resource; amounts of 0 count as used."""
        if self._usage is None:
            self._usage = {}
            for each in self.requests:
                for resource, amount in each.requests.items():
                    fr = (each.flavors.get(resource, ""), resource)
                    self._usage[fr] = self._usage.get(fr, 0) + amount
        return self._usage

    @property
    def topology_usage(self) -> TopologyUsage:
        """Usage of topology domains, by flavor."""
        if self._topology_usage is None:
            self._topology_usage = {}
            for each in self.requests:
                for flavor in dict.fromkeys(each.flavors.values()) if each.domains is not None else ():
                    self._topology_usage.setdefault(flavor, []).extend(each.domains or ())
        return self._topology_usage

    @property
    def scheduling_key(self) -> str | None:
        """A key that is equal for Workloads with equal decisions; ``None`` if it is not needed."""
        if self._shape is None and self.config.has(Gate.EQUIVALENCE):
            pod_sets = [
                (
                    pod_set.name,
                    _spec_shape(pod_set.template.spec),
                    pod_set_requests.count,
                    sorted(pod_set_requests.requests.items()),
                    pod_set.min_count,
                    pod_set.topology_request,
                )
                for pod_set, pod_set_requests in zip(self.pod_sets, self.requests, strict=False)
            ]
            self._shape = repr((self.effective_priority, pod_sets))
        return self._shape


def _boost(workload: Workload, config: KueueConfiguration) -> int:
    if not config.has(Gate.PRIORITY_BOOST):
        return 0
    text = workload.metadata.annotations.get(PRIORITY_BOOST, "")
    digits = text.removeprefix("-").removeprefix("+")
    if not (digits.isascii() and digits.isdigit() and len(text) - len(digits) <= 1 and len(text) <= 20):
        return 0
    return int(text) if -(2**31) <= int(text) < 2**31 else 0


def _counts(workload: Workload, config: KueueConfiguration) -> dict[str, int]:
    counts = {each.name: each.count for each in workload.spec.pod_sets}
    for each in workload.status.reclaimable_pods if config.has(Gate.RECLAIMABLE_PODS) else ():
        if each.name in counts:
            counts[each.name] -= min(each.count, counts[each.name])
    return counts


def _assigned(workload: Workload, config: KueueConfiguration) -> list[PodSetRequests]:
    assert workload.status.admission is not None
    now = _counts(workload, config)
    specs = {each.name: each for each in workload.spec.pod_sets}
    found = []
    for given in workload.status.admission.pod_set_assignments:
        pod_set = specs.get(given.name)
        count = given.count if given.count is not None else pod_set.count if pod_set else 0
        each = PodSetRequests(given.name, requests_of(given.resource_usage), count, given.flavors)
        if config.has(Gate.TOPOLOGY) and given.topology_assignment is not None:
            pod_requests = pod_requests_of(pod_set.template.spec) if pod_set else _each_of(each)
            each.domains = tuple(
                DomainPods(values, pod_requests, pods) for values, pods in domains_of(given.topology_assignment)
            )
        if now.get(given.name, 0) < count:
            each.count = now.get(given.name, 0)
            each.requests = {name: amount * each.count for name, amount in _each_of(each, count).items()}
        found.append(each)
    return found


def _each_of(pod_set: PodSetRequests, count: int | None = None) -> Requests:
    """Return the requests of one of ``count`` pods."""
    among = pod_set.count if count is None else count
    return {name: _quotient(amount, among) if among else amount for name, amount in pod_set.requests.items()}


def _quotient(amount: int, divisor: int) -> int:
    """Divide as Go does, truncating toward 0."""
    return amount // divisor if amount >= 0 else -(-amount // divisor)


def _spec_shape(spec: PodSpec) -> object:
    containers = [
        [(sorted(each.resources.requests.items()), each.ports) for each in some]
        for some in (spec.init_containers, spec.containers)
    ]
    return (
        containers,
        sorted(spec.node_selector.items()),
        spec.affinity,
        spec.tolerations,
        spec.runtime_class_name,
        spec.priority,
        spec.topology_spread_constraints,
        sorted(spec.overhead.items()),
        spec.resource_claims,
        sorted(spec.resources.requests.items()) if spec.resources else None,
    )
