"""Why no node is added for pending pods: what autoscalers report, and what in their objects is in the way."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from kpreempt.analysis.autoscaling.events import ReportedEvents, is_later
from kpreempt.analysis.autoscaling.node_pools import Volumes, obstacles_of
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import DISRUPTION_TERMINATING, SCALE_DOWN, SCALE_DOWN_EMPTY, Autoscaler
from kpreempt.model.kinds import KINDS
from kpreempt.model.meta import controller_of
from kpreempt.model.node import KARPENTER_GROUP, NODE_POOL, NodeClaim, status_of
from kpreempt.model.pod import Pod
from kpreempt.verdict.autoscaling import (
    AutoscalerReport,
    Autoscaling,
    IgnoredBecause,
    NodeClaimState,
    NodeGroupState,
    NotRead,
    PodAutoscaling,
)

# Nodes with these taints are removed, or are candidates for it.
_TAINTS = ("ToBeDeletedByClusterAutoscaler", "DeletionCandidateOfClusterAutoscaler")
# Pods with a lower priority trigger no scale-up by default (``--expendable-pods-priority-cutoff``).
_CUTOFF = -10
# The conditions of a NodeClaim in order (``pkg/apis/v1/nodeclaim_status.go``).
_PROGRESS = ("Launched", "Registered", "Initialized", "Ready")
_REMOVALS = (SCALE_DOWN, SCALE_DOWN_EMPTY, DISRUPTION_TERMINATING)
# How long a node that went away may matter; the same time for which events are kept by default.
_RECENT = timedelta(hours=1)


def autoscaling_of(
    cluster: ClusterSnapshot,
    pods: Sequence[Pod],
    at: datetime,
    *,
    changed: Collection[str] = (),
    are_new: bool = False,
) -> Autoscaling | None:
    """What autoscalers report about unschedulable pods; ``None`` if the cluster shows no autoscaler.

    ``changed`` are pods (``namespace/name``) that differ in this query from those in the cluster; if they ``are_new``,
    none of them exists yet. Ages count to ``at``.
    """
    events, volumes = ReportedEvents(cluster.events), Volumes(cluster)
    autoscalers = _autoscalers(cluster, events)
    if not autoscalers or not pods:
        return None
    statuses = [(each, status_of(each)) for each in cluster.config_maps]
    health = [status.cluster_wide.health.status for _, status in statuses if status.cluster_wide.health.status]
    times = [status.time for _, status in statuses if status.time is not None]
    return Autoscaling(
        autoscalers=autoscalers,
        pods=_grouped(
            msgspec.structs.replace(
                _of_pod(cluster, pod, events, volumes, autoscalers), is_new=are_new, is_changed=pod.key in changed
            )
            for pod in pods
        ),
        reports=[each for each in events.about_others() if _matters(each, at)],
        claims=[state for claim in cluster.node_claims if (state := _claim(claim)) is not None],
        node_groups=[
            NodeGroupState(
                name=group.name,
                health=group.health.status,
                size=group.health.cloud_provider_target,
                min_size=group.health.min_size,
                max_size=group.health.max_size,
                scale_up=group.scale_up.status,
                error_code=group.scale_up.backoff_info.error_code,
                error_message=group.scale_up.backoff_info.error_message,
            )
            for _, status in statuses
            for group in status.node_groups
        ],
        status_at=max(times, default=None),
        is_healthy=all(each == "Healthy" for each in health) if health else None,
        not_read=[
            NotRead(kind, cluster.unread[kind].status)
            for kind in _kinds_of(autoscalers)
            if kind in cluster.unread and not getattr(cluster, KINDS[kind].field)
        ],
    )


def _autoscalers(cluster: ClusterSnapshot, events: ReportedEvents) -> list[Autoscaler]:
    """The autoscalers that the cluster shows: by their objects, their events, and their marks on nodes."""
    found = dict(events.autoscalers)
    keys = {taint.key for node in cluster.nodes for taint in node.spec.taints}
    if cluster.config_maps or not keys.isdisjoint(_TAINTS):
        found[Autoscaler.CLUSTER_AUTOSCALER] = None
    if (
        cluster.node_pools
        or cluster.node_claims
        or any(NODE_POOL in node.labels for node in cluster.nodes)
        or any(key.startswith(f"{KARPENTER_GROUP}/") for key in keys)
    ):
        found[Autoscaler.KARPENTER] = None
    return sorted(found)


def _kinds_of(autoscalers: Sequence[Autoscaler]) -> list[str]:
    """The kinds that say what these autoscalers do."""
    karpenter = ["NodePool", "NodeClaim"] if Autoscaler.KARPENTER in autoscalers else []
    return ["Event", *karpenter, *(["ConfigMap"] if Autoscaler.CLUSTER_AUTOSCALER in autoscalers else [])]


def _of_pod(
    cluster: ClusterSnapshot, pod: Pod, events: ReportedEvents, volumes: Volumes, autoscalers: Sequence[Autoscaler]
) -> PodAutoscaling:
    owner, ignored = controller_of(pod.metadata), []
    if owner is not None and owner.kind == "DaemonSet":
        ignored.append(IgnoredBecause.DAEMON_SET)
    if pod.status.nominated_node_name:
        ignored.append(IgnoredBecause.NOMINATED)
    if pod.priority < _CUTOFF and Autoscaler.CLUSTER_AUTOSCALER in autoscalers:
        ignored.append(IgnoredBecause.LOW_PRIORITY)
    own_volumes = volumes.of(pod)
    pools = [obstacles_of(pool, pod, own_volumes) for pool in cluster.node_pools]
    return PodAutoscaling(
        pods=[pod.key],
        ignored=ignored,
        reports=events.about_pod(pod),
        pools=sorted(pools, key=lambda each: (len(each.obstacles), each.pool)),
    )


def _grouped(answers: Iterable[PodAutoscaling]) -> list[PodAutoscaling]:
    """Merge the answers that differ only in pods and times. Of several pods, only the latest reports matter."""
    answers, groups = list(answers), dict[bytes, PodAutoscaling]()
    if len(answers) > 1:
        answers = [msgspec.structs.replace(each, reports=_latest(each.reports)) for each in answers]
    for each in answers:
        same = msgspec.structs.replace(
            each, pods=[], reports=[msgspec.structs.replace(report, at=None) for report in each.reports]
        )
        key = msgspec.json.encode(same)
        known = groups.get(key)
        if known is None:
            groups[key] = each
            continue
        reports = [two if is_later(two, one) else one for one, two in zip(known.reports, each.reports, strict=True)]
        groups[key] = msgspec.structs.replace(known, pods=[*known.pods, *each.pods], reports=reports)
    return list(groups.values())


def _latest(reports: Iterable[AutoscalerReport]) -> list[AutoscalerReport]:
    """The first report of each autoscaler."""
    found: dict[Autoscaler, AutoscalerReport] = {}
    for each in reports:
        found.setdefault(each.autoscaler, each)
    return list(found.values())


def _matters(report: AutoscalerReport, at: datetime) -> bool:
    """Whether a report about something other than the pods may explain why they have no node."""
    if report.reason not in _REMOVALS:
        return True
    # Each removal is reported several times: about the cluster, the node, and the NodeClaim.
    is_once = report.about.startswith("Node ") if report.reason == DISRUPTION_TERMINATING else not report.about
    return is_once and report.at is not None and at - report.at <= _RECENT


def _claim(claim: NodeClaim) -> NodeClaimState | None:
    """The state of a claim whose node is not ready; ``None`` if it is, or if the claim is being deleted."""
    conditions = {each.type: each for each in claim.status.conditions}
    missing = next((each for each in _PROGRESS if each not in conditions or conditions[each].status != "True"), "")
    if not missing or claim.metadata.deletion_timestamp is not None:
        return None
    condition = conditions.get(missing)
    return NodeClaimState(
        name=claim.metadata.name,
        pool=claim.metadata.labels.get(NODE_POOL, ""),
        node=claim.status.node_name,
        created=claim.metadata.creation_timestamp,
        missing=missing,
        reason=condition.reason if condition is not None else "",
        message=condition.message if condition is not None else "",
    )
