"""InterPodAffinity's anti-affinity as limits: of the pods that may not be beside each other there must be none."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kpreempt.schedulers.kube.bulk.limits import ALWAYS, Excess, Limit, PluginLimits
from kpreempt.schedulers.kube.bulk.pod_table import Integers, PodTable
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, PodInfo
from kpreempt.schedulers.kube.plugins.inter_pod_affinity.filtering import (
    REASON_ANTI_AFFINITY,
    REASON_EXISTING_ANTI_AFFINITY,
    FilterState,
    TopologyCounts,
)
from kpreempt.verdict import Code, Status


def affinity_limits(plugin: str, state: FilterState, table: PodTable, nodes: Sequence[NodeInfo]) -> PluginLimits | None:
    """One limit per topology key of the pod's own anti-affinity terms, and of those of existing pods.

    ``None`` for a pod with required affinity: there victims may be what the pod wants beside it.
    """
    if state.incoming.affinity_terms:
        return None
    terms = state.incoming.anti_affinity_terms
    own_keys = list(dict.fromkeys(term.topology_key for term in terms))
    existing_keys = sorted({key for key, _ in state.existing_anti_affinity})
    limits = []
    for key in own_keys:
        matching = [term for term in terms if term.topology_key == key]
        _, representatives = table.label_groups
        amounts = table.per_group([sum(term.matches(pod, None) for term in matching) for pod in representatives])
        limits.append(_limit(state.anti_affinity, key, amounts, nodes))
    incoming = state.incoming
    existing = table.count_anti_affinity(lambda term: term.matches(incoming.pod, incoming.namespace_labels))
    limits += [_limit(state.existing_anti_affinity, key, existing[key], nodes) for key in existing_keys]

    def refuse(excess: Excess) -> Status:
        exceeded = {key for key, is_over in zip(own_keys, excess.exceeded, strict=False) if is_over}
        is_own = bool(exceeded)
        reason = REASON_ANTI_AFFINITY if is_own else REASON_EXISTING_ANTI_AFFINITY
        if not excess.is_bare:
            return Status(Code.UNSCHEDULABLE, [reason])
        bare = _bare(nodes[excess.node], incoming.pod.priority)
        labels = bare.node.labels
        if is_own:
            key = next(key for key in own_keys if key in exceeded)
            detail = state.evidence.of_anti_affinity((key, labels[key]), bare)
        else:
            over = dict(zip(existing_keys, excess.exceeded[len(own_keys) :], strict=True))
            key = next(key for key in labels if over.get(key))
            detail = state.evidence.of_existing_anti_affinity((key, labels[key]), bare)
        return Status(Code.UNSCHEDULABLE, [reason], detail=detail)

    def adds(info: PodInfo) -> list[int] | None:
        if info.has_required_anti_affinity:
            return None
        own = [sum(term.matches(info.pod, None) for term in terms if term.topology_key == key) for key in own_keys]
        return [*own, *(0 for _ in existing_keys)]

    return PluginLimits(plugin, limits, refuse, adds=adds)


def _bare(node_info: NodeInfo, priority: int) -> NodeInfo:
    """The node without its pods below that priority."""
    bare = node_info.snapshot()
    for pod_info in node_info.pods:
        if pod_info.priority < priority:
            bare.remove_pod(pod_info)
    return bare


def _limit(counts: TopologyCounts, key: str, amounts: Integers, nodes: Sequence[NodeInfo]) -> Limit:
    values = [node_info.node.labels.get(key) for node_info in nodes]
    used = [0 if value is None else counts.get((key, value), 0) for value in values]
    most = [ALWAYS if value is None else 0 for value in values]
    return Limit(np.array(used, dtype=np.int64), np.array(most, dtype=np.int64), amounts)
