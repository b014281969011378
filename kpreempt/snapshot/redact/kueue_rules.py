"""Redaction of Kueue's objects.

Messages of conditions are removed, like those of pods: a redacted cluster does not show what preempted a Workload
before. Everything else decides as before, using tokens.
"""

from __future__ import annotations

from typing import Any

import msgspec

from kpreempt.model import kueue, meta
from kpreempt.snapshot.redact import spaces
from kpreempt.snapshot.redact.spaces import WORDS, Renamer, Rule, each_item, name_rule, nothing
from kpreempt.snapshot.redact.tokens import Space

_FLAVOR = Space("flavor")
_TOPOLOGY = Space("topology")
_CHECK = Space("admissioncheck")
_COHORT = Space("cohort")
_CLUSTER_QUEUE = Space("clusterqueue")
# The default name of a pod set.
_POD_SET = Space("podset", "main".__eq__)
_CONTROLLERS = frozenset({"kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/multikueue"})
_CONTROLLER = Space("controller", _CONTROLLERS.__contains__, is_sorted=False)

# The record types of the kinds, and the spaces of their names.
KINDS: dict[type[msgspec.Struct], str] = {
    record: record.__name__
    for record in (
        kueue.ClusterQueue,
        kueue.Cohort,
        kueue.LocalQueue,
        kueue.ResourceFlavor,
        kueue.Topology,
        kueue.AdmissionCheck,
        kueue.Workload,
    )
}
NAMES: dict[str, Space] = {
    "ClusterQueue": _CLUSTER_QUEUE,
    "Cohort": _COHORT,
    "LocalQueue": spaces.LOCAL_QUEUE,
    "ResourceFlavor": _FLAVOR,
    "Topology": _TOPOLOGY,
    "AdmissionCheck": _CHECK,
    "Workload": Space("workload"),
}


def _flavors(renamer: Renamer, value: dict[str, str]) -> dict[str, str]:
    """Replace the flavor of each resource."""
    return {renamer.resource(name): renamer.rename(_FLAVOR, flavor) for name, flavor in value.items()}


def _presence_only(_: Renamer, value: Any) -> Any:
    """Replace a value that is not modeled, but whose presence is reported."""
    return [{} for _ in value] if isinstance(value, list) else {"redacted": True}


def _assignment(renamer: Renamer, value: kueue.TopologyAssignment) -> kueue.TopologyAssignment:
    """Replace domains, which are values of their level's labels and are distinguished one by one."""
    levels = value.levels
    slices = [
        msgspec.structs.replace(
            each,
            values_per_level=[
                _domains(renamer, level, names, each.domain_count)
                for level, names in zip(levels, each.values_per_level, strict=False)
            ],
        )
        for each in value.slices
    ]
    domains = [
        msgspec.structs.replace(
            each,
            values=[renamer.label_value(level, name) for level, name in zip(levels, each.values, strict=False)],
        )
        for each in value.domains
    ]
    keys = [renamer.rename(spaces.LABEL_KEY, each) for each in levels]
    return kueue.TopologyAssignment(levels=keys, slices=slices, domains=domains)


def _domains(renamer: Renamer, level: str, names: kueue.LevelValues, count: int) -> kueue.LevelValues:
    if names.individual is None:
        return kueue.LevelValues(universal=renamer.label_value(level, names.universal or ""))
    roots = [renamer.label_value(level, names.at(index)) for index in range(min(count, len(names.individual.roots)))]
    return kueue.LevelValues(individual=kueue.IndividualValues(roots=roots))


RECORDS: dict[type[msgspec.Struct], Rule] = {kueue.TopologyAssignment: _assignment}
FIELDS: dict[type[msgspec.Struct], dict[str, Rule]] = {
    kueue.ResourceQuota: {"name": each_item(Renamer.resource)},
    kueue.FlavorQuotas: {"name": name_rule(_FLAVOR)},
    kueue.ResourceGroup: {"covered_resources": each_item(Renamer.resource)},
    kueue.CohortSpec: {"parent_name": name_rule(_COHORT), "parent": name_rule(_COHORT)},
    kueue.BorrowWithinCohort: {"policy": WORDS},
    kueue.ClusterQueuePreemption: {"within_cluster_queue": WORDS, "reclaim_within_cohort": WORDS},
    kueue.FlavorFungibility: {"when_can_borrow": WORDS, "when_can_preempt": WORDS, "preference": WORDS},
    kueue.AdmissionCheckRule: {"name": name_rule(_CHECK), "on_flavors": name_rule(_FLAVOR)},
    kueue.ClusterQueueSpec: {
        "cohort_name": name_rule(_COHORT),
        "cohort": name_rule(_COHORT),
        "queueing_strategy": WORDS,
        "admission_checks": name_rule(_CHECK),
        "stop_policy": WORDS,
        "admission_scope": _presence_only,
        "concurrent_admission_policy": _presence_only,
    },
    kueue.LocalQueueSpec: {"cluster_queue": name_rule(_CLUSTER_QUEUE), "stop_policy": WORDS},
    kueue.ResourceFlavorSpec: {"node_labels": Renamer.labels, "topology_name": name_rule(_TOPOLOGY)},
    kueue.TopologyLevel: {"node_label": name_rule(spaces.LABEL_KEY)},
    kueue.Condition: {"type": WORDS, "status": WORDS, "reason": WORDS, "message": nothing},
    kueue.AdmissionCheckSpec: {"controller_name": name_rule(_CONTROLLER)},
    kueue.TopologyRequest: {
        "required": name_rule(spaces.LABEL_KEY),
        "preferred": name_rule(spaces.LABEL_KEY),
        "pod_set_group_name": name_rule(Space("podsetgroup")),
        "pod_set_slice_required_topology": name_rule(spaces.LABEL_KEY),
        "podset_slice_required_topology_constraints": _presence_only,
    },
    kueue.PodTemplate: {"metadata": lambda renamer, value: meta.ObjectMeta(labels=renamer.labels(value.labels))},
    kueue.PodSet: {"name": name_rule(_POD_SET)},
    kueue.WorkloadSpec: {"queue_name": name_rule(spaces.LOCAL_QUEUE), "preemption_gates": _presence_only},
    kueue.PodSetAssignment: {"name": name_rule(_POD_SET), "flavors": _flavors},
    kueue.Admission: {"cluster_queue": name_rule(_CLUSTER_QUEUE)},
    kueue.AdmissionCheckState: {"name": name_rule(_CHECK), "state": WORDS},
    kueue.ReclaimablePod: {"name": name_rule(_POD_SET)},
    kueue.WorkloadStatus: {"unhealthy_nodes": _presence_only},
}
