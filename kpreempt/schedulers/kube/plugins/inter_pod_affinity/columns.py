"""InterPodAffinity as limits: the number of pods in a domain that anti-affinity excludes must be 0.

Pods required by affinity must exist even after all victims are removed; reprieving pods only adds to them. So required
affinity accepts or rejects a node whichever pods are reprieved.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress

import numpy as np

from kpreempt.schedulers.kube.bulk.limits import ALWAYS, NEVER, Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import Integers, PodTable
from kpreempt.schedulers.kube.framework.label_selectors import AffinityTerm
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.filtering import (
    REASON_AFFINITY,
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    FilterState,
    TopologyCounts,
    matches_all_terms,
    unmet_affinity_term,
)
from kpreempt.verdict import Code, Status


def affinity_limits(plugin: str, state: FilterState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits:
    """Return one limit per topology key of the pod's own anti-affinity terms, and of those of existing pods.

    A limit for its required affinity comes first.
    """
    unmet = _unmet_on_bare(state, table, nodes)
    nothing = np.zeros(len(nodes), dtype=np.int64)
    most = np.array([ALWAYS if term is None else NEVER for term in unmet], dtype=np.int64)
    requested = Limit(nothing, most, np.zeros(len(table.pods), dtype=np.int64))
    terms = state.incoming.anti_affinity_terms
    own_keys = list(dict.fromkeys(term.topology_key for term in terms))
    existing_keys = sorted({key for key, _ in state.existing_anti_affinity})
    limits = [requested]
    for key in own_keys:
        matching = [term for term in terms if term.topology_key == key]
        _, representatives = table.label_groups
        amounts = table.per_group([sum(term.matches(pod, None) for term in matching) for pod in representatives])
        limits.append(_limit(state.anti_affinity, key, amounts, nodes))
    incoming = state.incoming
    existing = table.count_anti_affinity(lambda term: term.matches(incoming.pod, incoming.namespace_labels))
    limits += [_limit(state.existing_anti_affinity, key, existing[key], nodes) for key in existing_keys]

    def reject(excess: Excess) -> Status:
        term = unmet[excess.node]
        if term is not None:
            detail = state.evidence.of_affinity(term, nodes[excess.node].node.labels)
            return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, [REASON_AFFINITY], detail=detail)
        of_own, of_existing = excess.exceeded[1 : 1 + len(own_keys)], excess.exceeded[1 + len(own_keys) :]
        exceeded = set(compress(own_keys, of_own))
        is_own = bool(exceeded)
        reason = REASON_ANTI_AFFINITY if is_own else REASON_EXISTING_ANTI_AFFINITY
        if not excess.is_bare:
            return Status(Code.UNSCHEDULABLE, [reason])
        bare = nodes[excess.node].snapshot()
        for pod_info in nodes[excess.node].pods:
            if pod_info.priority < incoming.pod.priority:
                bare.remove_pod(pod_info)
        labels = bare.node.labels
        if is_own:
            key = next(key for key in own_keys if key in exceeded)
            detail = state.evidence.of_anti_affinity((key, labels[key]), bare)
        else:
            over = set(compress(existing_keys, of_existing))
            key = next(key for key in labels if key in over)
            detail = state.evidence.of_existing_anti_affinity((key, labels[key]), bare)
        return Status(Code.UNSCHEDULABLE, [reason], detail=detail)

    def adds(info: PodInfo) -> list[int] | None:
        if info.has_required_anti_affinity or matches_all_terms(incoming.affinity_terms, info.pod):
            return None
        own = [sum(term.matches(info.pod, None) for term in terms if term.topology_key == key) for key in own_keys]
        return [0, *own, *(0 for _ in existing_keys)]

    return PluginLimits(plugin, limits, reject, adds=adds)


def _unmet_on_bare(state: FilterState, table: PodTable, nodes: Sequence[NodeInfo]) -> list[AffinityTerm | None]:
    """Return the affinity term that keeps the pod off each node without lower-priority pods."""
    incoming = state.incoming
    if not incoming.affinity_terms:
        return [None] * len(nodes)
    _, representatives = table.label_groups
    matching = table.per_group([int(matches_all_terms(incoming.affinity_terms, pod)) for pod in representatives])
    num_removed = table.total(np.where(table.priority < incoming.pod.priority, matching, 0)).tolist()
    position = table.cluster.position
    return [
        unmet_affinity_term(state, node_info.node.labels, num_removed[position[node_info.name]]) for node_info in nodes
    ]


def _limit(counts: TopologyCounts, key: str, amounts: Integers, nodes: Sequence[NodeInfo]) -> Limit:
    values = [node_info.node.labels.get(key) for node_info in nodes]
    used = [0 if value is None else counts.get((key, value), 0) for value in values]
    most = [ALWAYS if value is None else 0 for value in values]
    return Limit(np.array(used, dtype=np.int64), np.array(most, dtype=np.int64), amounts)
