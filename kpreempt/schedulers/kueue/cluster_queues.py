"""ClusterQueues as the scheduler has them: quota, policies, admitted Workloads, and why one is inactive.

Follows ``pkg/cache/scheduler/clusterqueue.go`` of Kueue v0.19.2.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kpreempt.model.kueue import AdmissionCheck, ClusterQueue, ResourceFlavor
from kpreempt.schedulers.kueue.amounts import FlavorResource
from kpreempt.schedulers.kueue.quota import Amounts, Node, quotas_of
from kpreempt.schedulers.kueue.shares import weight_of
from kpreempt.schedulers.kueue.topology import FlavorTopology, TopologyUsage
from kpreempt.schedulers.kueue.workloads import Info

NEVER = "Never"
MULTIKUEUE = "kueue.x-k8s.io/multikueue"
PROVISIONING = "kueue.x-k8s.io/provisioning-request"


class Group:
    """A resource group: what it covers, and its flavors in order."""

    __slots__ = ("covered", "flavors")

    def __init__(self, covered: Iterable[str], flavors: Iterable[str]) -> None:
        self.covered = frozenset(covered)
        self.flavors = list(flavors)


class Queue:
    """A ClusterQueue with its place in the quota tree."""

    def __init__(self, record: ClusterQueue) -> None:
        self.record = record
        self.name = record.name
        spec = record.spec
        self.node = Node(self.name, quotas_of(spec.resource_groups), weight_of(spec.fair_sharing), is_cohort=False)
        self.groups = [
            Group(each.covered_resources, (flavor.name for flavor in each.flavors)) for each in spec.resource_groups
        ]
        self.preemption = spec.preemption
        self.fungibility = spec.flavor_fungibility
        self.is_strict = spec.queueing_strategy == "StrictFIFO"
        self.workloads: dict[str, Info] = {}
        # Rises when one of its Workloads goes or changes.
        self.generation = 1
        self.topologies: dict[str, FlavorTopology] = {}
        self.is_topology_only = False
        self.inactive_because = ""
        self.has_multikueue = False
        self.provisioned_flavors: frozenset[str] = frozenset()
        self._group_of: dict[str, Group | None] = {}
        # By what they use; made anew once a Workload comes or goes.
        self._in_order: dict[frozenset[FlavorResource], list[Info]] = {}

    def __repr__(self) -> str:
        return self.name

    def group_of(self, resource: str) -> Group | None:
        """The group that covers a resource."""
        if resource not in self._group_of:
            self._group_of[resource] = next((each for each in self.groups if resource in each.covered), None)
        return self._group_of[resource]

    def let_in(self, info: Info) -> None:
        """Have a Workload that may be preempted."""
        self.workloads[info.key] = info
        self._in_order.clear()

    def let_go(self, info: Info) -> None:
        """Have it no more."""
        del self.workloads[info.key]
        self._in_order.clear()

    def in_order(self, frs: frozenset[FlavorResource]) -> list[Info]:
        """The Workloads that use any of these, who goes first before the others."""
        found = self._in_order.get(frs)
        if found is None:
            # Those that were given any of these flavors for these resources.
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

    def selects(self, labels: Mapping[str, str]) -> bool:
        """Whether Workloads of a namespace with these labels may have its quota."""
        selector = self.record.spec.namespace_selector
        return selector is not None and selector.matches(labels)

    def use(self, quota: Amounts, topology: TopologyUsage) -> None:
        """Add usage."""
        self.node.add(quota)
        self._move(topology, 1)

    def free(self, quota: Amounts, topology: TopologyUsage) -> None:
        """Take usage away."""
        self.node.remove(quota)
        self._move(topology, -1)

    def _move(self, usage: TopologyUsage, sign: int) -> None:
        for flavor, pods in usage.items():
            topology = self.topologies.get(flavor)
            if topology is not None:
                for each in pods:
                    topology.use(each, sign)

    def checks_for(self, flavors: Iterable[str]) -> set[str]:
        """The admission checks of a Workload that was given these flavors."""
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
        """Find out whether it is active, and which of its flavors have a topology."""
        with_topology = {
            name: flavors[name].spec.topology_name
            for name in self.all_flavors
            if has_topologies and name in flavors and flavors[name].spec.topology_name
        }
        self.topologies = {name: topologies[name] for name in with_topology if name in topologies}
        self.is_topology_only = all(name in with_topology for name in self.all_flavors)
        rules = {each.name: each.on_flavors for each in self.record.spec.admission_checks_strategy.admission_checks}
        wanted = sorted({*self.record.spec.admission_checks, *rules})
        by_controller: dict[str, list[str]] = {}
        for name in wanted:
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
                [c for c in wanted if c not in checks],
            ),
            *_problem(
                "AdmissionCheckInactive",
                "references inactive AdmissionCheck(s)",
                [c for c in wanted if c in checks and not checks[c].is_active],
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
            told = ", ".join(message for _, message in found)
            self.inactive_because = f"NotActive|{found[0][0]}|Can't admit new workloads: {told}."


def _problem(reason: str, words: str, names: list[str]) -> list[tuple[str, str, bool]]:
    return [(reason, f"{words}: {','.join(names)}", True)] if names else []
