"""What redaction makes of Kueue's objects.

Messages of conditions go, as those of pods do: who preempted a Workload before is not in a redacted cluster. All else
decides as before, by tokens.
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
# The name of a pod set that nobody named.
_POD_SET = Space("podset", "main".__eq__)
_CONTROLLERS = frozenset({"kueue.x-k8s.io/provisioning-request", "kueue.x-k8s.io/multikueue"})
_CONTROLLER = Space("controller", _CONTROLLERS.__contains__, is_sorted=False)

# The kinds by their records, and the spaces of their names.
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
    """The flavor of each resource."""
    return {renamer.resource(name): renamer.rename(_FLAVOR, flavor) for name, flavor in value.items()}


def _that_there_are_some(_: Renamer, value: Any) -> Any:
    """What is not modelled, which is told where it is there."""
    return [{} for _ in value] if isinstance(value, list) else {"redacted": True}


def _assignment(renamer: Renamer, value: kueue.TopologyAssignment) -> kueue.TopologyAssignment:
    """Domains are values of the labels of their levels, which are told apart one by one."""
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
        "admission_scope": _that_there_are_some,
        "concurrent_admission_policy": _that_there_are_some,
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
        "podset_slice_required_topology_constraints": _that_there_are_some,
    },
    kueue.PodTemplate: {"metadata": lambda renamer, value: meta.ObjectMeta(labels=renamer.labels(value.labels))},
    kueue.PodSet: {"name": name_rule(_POD_SET)},
    kueue.WorkloadSpec: {"queue_name": name_rule(spaces.LOCAL_QUEUE), "preemption_gates": _that_there_are_some},
    kueue.PodSetAssignment: {"name": name_rule(_POD_SET), "flavors": _flavors},
    kueue.Admission: {"cluster_queue": name_rule(_CLUSTER_QUEUE)},
    kueue.AdmissionCheckState: {"name": name_rule(_CHECK), "state": WORDS},
    kueue.ReclaimablePod: {"name": name_rule(_POD_SET)},
    kueue.WorkloadStatus: {"unhealthy_nodes": _that_there_are_some},
}
