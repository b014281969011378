"""Whether a flavor is for a pod set at all, before quota is looked at (``checkFlavorForPodSets``)."""

from __future__ import annotations

from kpreempt.model.affinity import NodeSelectorTerm
from kpreempt.model.kueue import PodSet, ResourceFlavor, TopologyRequest
from kpreempt.model.pod import PodSpec
from kpreempt.model.taints import find_untolerated_taint
from kpreempt.schedulers.kueue.amounts import pod_requests_of
from kpreempt.schedulers.kueue.cluster_queues import Group, Queue
from kpreempt.schedulers.kueue.topology import FlavorTopology

_EFFECTS = frozenset({"NoSchedule", "NoExecute"})


def is_topology_asked(pod_set: PodSet, queue: Queue) -> bool:
    """Whether a pod set is placed by topology: it asks for that, or the ClusterQueue has nothing else."""
    return is_explicit(pod_set) or is_implied(pod_set, queue)


def is_explicit(pod_set: PodSet) -> bool:
    """Whether a pod set asks to be placed by topology."""
    return pod_set.topology_request is not None and pod_set.topology_request.is_explicit


def is_implied(pod_set: PodSet, queue: Queue) -> bool:
    """Whether only the ClusterQueue has a pod set placed by topology."""
    return not is_explicit(pod_set) and queue.is_topology_only


def why_not(flavor: ResourceFlavor, pod_set: PodSet, queue: Queue, group: Group, *, has_topologies: bool) -> str:
    """Why a pod set cannot have a flavor; an empty text if it can. The first reason counts."""
    if has_topologies and (reason := _topology_mismatch(flavor, pod_set, queue, group)):
        return reason
    spec = pod_set.template.spec
    tolerations = [*spec.tolerations, *flavor.spec.tolerations]
    taint = find_untolerated_taint(flavor.spec.node_taints, tolerations, _EFFECTS, compares_numbers=True)
    if taint is not None:
        return f"untolerated taint {{{taint.key} {taint.value} {taint.effect} <nil>}} in flavor {flavor.name}"
    if not matches_labels(spec, flavor.spec.node_labels):
        return f"flavor {flavor.name} doesn't match node affinity"
    return ""


def matches_labels(spec: PodSpec, labels: dict[str, str]) -> bool:
    """Whether node selector and required node affinity match a flavor's labels, as far as these have the keys."""
    if any(labels[key] != value for key, value in spec.node_selector.items() if key in labels):
        return False
    required = spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
    if required is None:
        return True
    terms = []
    for term in required.node_selector_terms:
        known = [each for each in term.match_expressions if each.key in labels]
        if not known:
            # Terms are alternatives: one that asks nothing of this flavor lets all through.
            return True
        terms.append(NodeSelectorTerm(match_expressions=known))
    return not terms or any(term.matches("", labels) for term in terms)


def _topology_mismatch(flavor: ResourceFlavor, pod_set: PodSet, queue: Queue, group: Group) -> str:
    if not is_topology_asked(pod_set, queue):
        return f'Flavor "{flavor.name}" supports only TopologyAwareScheduling' if flavor.spec.topology_name else ""
    request = pod_set.topology_request
    if request is None or not request.is_explicit:
        return ""
    if not flavor.spec.topology_name:
        asks = pod_requests_of(pod_set.template.spec)
        overlaps = any(name in group.covered for name in asks)
        return f'Flavor "{flavor.name}" does not support TopologyAwareScheduling' if overlaps else ""
    topology = queue.topologies.get(flavor.name)
    if topology is None:
        return f'Flavor "{flavor.name}" information missing in TAS cache'
    key = level_key(topology, request)
    slices = request.pod_set_slice_required_topology or topology.levels[-1]
    if key is None or topology.level_of(key) is None or topology.level_of(slices) is None:
        return f'Flavor "{flavor.name}" does not contain the requested level'
    return ""


def level_key(topology: FlavorTopology, request: TopologyRequest) -> str | None:
    """The level that is asked for, by its label."""
    if request.required is not None:
        return request.required
    if request.preferred is not None:
        return request.preferred
    if request.pod_set_slice_required_topology is not None:
        return topology.levels[0]
    return topology.levels[-1] if request.unconstrained else None
