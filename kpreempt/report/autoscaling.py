"""What node autoscalers report about pending pods: ``AUTOSCALER``, one section for all of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from kpreempt.model.cluster import ABSENT, FORBIDDEN
from kpreempt.model.event import (
    FAILED_SCHEDULING,
    KARPENTER_FAILED,
    NOMINATED,
    NOT_TRIGGER_SCALE_UP,
    TRIGGERED_SCALE_UP,
    Autoscaler,
)
from kpreempt.report.amounts import ago, agree, count, format_amount, format_duration
from kpreempt.report.blocks import Block, Listing, Section, Span, Words, phrase_of, strong
from kpreempt.report.evidence import join_names
from kpreempt.verdict.autoscaling import (
    AutoscalerReport,
    Autoscaling,
    IgnoredBecause,
    NodeClaimState,
    NodeGroupState,
    Obstacle,
    ObstacleKind,
    PodAutoscaling,
    PoolObstacles,
)

_NAMES = {Autoscaler.CLUSTER_AUTOSCALER: "Cluster Autoscaler", Autoscaler.KARPENTER: "Karpenter"}
_PODS_SHOWN = 3
# What a screen shows of long lists, and of a text that lists instance types.
_POOLS_SHOWN = 3
_REASONS_SHOWN = 4
_OTHERS_SHOWN = 2
_TEXT_SHOWN = 150
_MIN_LINES = 4
_PREFIX = re.compile(r"^pod didn't trigger scale-up(?: \([^)]*\))?:?\s*")
# ``[{asg-a 1->2 (max: 10)}]``
_SCALED = re.compile(r"\{(\S{1,300}) (\d{1,9})->(\d{1,9}) \(max: (\d{1,9})\)\}")
# It writes its status every 10 seconds (``--scan-interval``).
_STALE = timedelta(minutes=10)
_IN_PROGRESS, _BACKOFF, _UNHEALTHY = "InProgress", "Backoff", "Unhealthy"
_IGNORED = {
    IgnoredBecause.DAEMON_SET: "autoscalers add no nodes for pods of a DaemonSet",
    IgnoredBecause.NOMINATED: "autoscalers add no node for a pod while it has a nominated node",
    IgnoredBecause.LOW_PRIORITY: "pods with a priority below -10 trigger no scale-up by default (Cluster Autoscaler's"
    " --expendable-pods-priority-cutoff)",
}
# What was not read, the resource in ``kubectl auth can-i list``, and the command that adds it to a snapshot.
_KINDS = {
    "Event": ("events", "events", "kubectl get events -A -o yaml"),
    "NodePool": ("NodePools", "nodepools.karpenter.sh", "kubectl get nodepools -o yaml"),
    "NodeClaim": ("NodeClaims", "nodeclaims.karpenter.sh", "kubectl get nodeclaims -o yaml"),
    "ConfigMap": (
        "Cluster Autoscaler's status",
        "configmaps",
        "kubectl get configmap cluster-autoscaler-status -n kube-system -o yaml",
    ),
}


def autoscaling_section(
    autoscaling: Autoscaling, at: datetime | None, *, priority: int, names_pods: bool = False
) -> Section:
    """What autoscalers report about pods, and what is in the way of a new node; ages count to ``at``.

    With ``names_pods``, or if there are several answers, each starts with the pods that it is about.
    """
    is_named = names_pods or len(autoscaling.pods) > 1
    full, brief = (
        [
            *(line for pods in autoscaling.pods for line in _about_pods(pods, at, is_brief, is_named)),
            *_about_others(autoscaling, at, is_brief),
        ]
        for is_brief in (False, True)
    )
    blocks: list[Block] = [Listing(full, noun="line")]
    return Section(
        "AUTOSCALER",
        blocks=blocks,
        heading="What autoscalers report",
        is_inline=True,
        priority=priority,
        min_lines=_MIN_LINES,
        aside=0 if autoscaling.reports or any(each.reports or each.ignored for each in autoscaling.pods) else 3,
        short=Section("AUTOSCALER", blocks=[Listing(brief, noun="line")], is_inline=True),
    )


def _about_pods(
    pods: PodAutoscaling, at: datetime | None, is_brief: bool, names_pods: bool
) -> Iterable[Sequence[Words]]:
    """The reports on the pods, then the pools; a brief form has only the latest report of each autoscaler."""
    names = f"{join_names(pods.pods, limit=_PODS_SHOWN)}: " if names_pods else ""
    items: list[list[Words]] = [[Span(_IGNORED[each], "warn")] for each in pods.ignored]
    latest: dict[Autoscaler, str] = {}
    for report in pods.reports:
        if not (is_brief and report.autoscaler in latest):
            items.append(_of_pod(report, pods, at, is_brief))
        latest.setdefault(report.autoscaler, report.reason)
    if not pods.reports and not pods.is_new and not pods.ignored:
        items.append(["no report about the pod: there was none, or its events have expired (after 1h by default)"])
    shown = pods.pools
    if is_brief:
        # A claim is on its way.
        shown = [] if latest.get(Autoscaler.KARPENTER) == NOMINATED else shown[:_POOLS_SHOWN]
    items += [[_pool(pool, is_brief)] for pool in shown]
    if shown and (left := len(pods.pools) - len(shown)):
        items.append([Span(f"{count(left, 'more NodePool')} (-v)", "dim")])
    for number, (first, *rest) in enumerate(items):
        yield [(strong(names), *phrase_of(first)) if names and not number else first, *rest]


def _heading(report: AutoscalerReport, now: datetime | None, *, is_changed: bool = False) -> str:
    outdated = ", before the pod's last change" if report.is_outdated else ""
    outdated = ", about the pod without these changes" if is_changed else outdated
    return f"{_NAMES[report.autoscaler]}, {ago(report.at, now).strip() or 'at an unknown time'}{outdated}: "


def _of_pod(report: AutoscalerReport, pods: PodAutoscaling, now: datetime | None, is_brief: bool) -> list[Words]:
    """A report about the pod, with each reason on a separate line.

    A brief form leaves out Karpenter's reasons if the pools, which follow, show them.
    """
    start, lines = _heading(report, now, is_changed=pods.is_changed), list[str]()
    words = report.message or report.reason
    if report.reason == NOT_TRIGGER_SCALE_UP:
        words = "pod didn't trigger scale-up"
        lines = [f"{count(each.groups, 'node group')}: {each.reason}" for each in report.reasons]
        if not lines:
            rest = _PREFIX.sub("", report.message)
            words = f"{words}: {rest}" if rest else f"{words}; it considered no node group"
    elif report.reason == TRIGGERED_SCALE_UP:
        scaled = _SCALED.findall(report.message)
        if scaled:
            words = "pod triggered scale-up"
            lines = [
                f"node group {group} from {before} to {count(int(after), 'node')} (maximum {most})"
                for group, before, after, most in scaled
            ]
    elif report.reason == FAILED_SCHEDULING:
        words = "Failed to schedule pod"
        lines = list(dict.fromkeys(report.parts)) or [report.message.removeprefix(KARPENTER_FAILED)]
        lines = [] if is_brief and pods.pools else lines
    if is_brief:
        left = len(lines) - _REASONS_SHOWN
        lines = [_shortened(line) for line in lines[:_REASONS_SHOWN]] + ([f"{left:,} more (-v)"] if left > 0 else [])
    return [(strong(start), words), *lines]


def _shortened(text: str) -> str:
    return text if len(text) <= _TEXT_SHOWN else f"{text[: _TEXT_SHOWN - 1]}…"


def _pool(pool: PoolObstacles, is_brief: bool) -> Words:
    words = "; ".join(map(_obstacle, pool.obstacles)) or "nothing in the way (instance types are not checked)"
    return (strong(f"NodePool {pool.pool}: "), _shortened(words) if is_brief else words)


def _obstacle(obstacle: Obstacle) -> str:
    match obstacle.kind:
        case ObstacleKind.BEING_DELETED:
            return "being deleted"
        case ObstacleKind.STATIC:
            return "a fixed number of nodes (spec.replicas)"
        case ObstacleKind.NOT_READY:
            return f"not ready{f' ({obstacle.message})' if obstacle.message else ''}"
        case ObstacleKind.TAINT:
            return f"{obstacle.offered} is not tolerated"
        case ObstacleKind.REQUIREMENT:
            who = obstacle.volume or "the pod"
            if obstacle.offered:
                return f"{obstacle.offered}, but {who} needs {obstacle.wanted}"
            return f"does not define {obstacle.wanted}"
    requested, limit = (format_amount(obstacle.key, each) for each in (obstacle.requested, obstacle.limit))
    needs = f", the pod requests {requested}" if obstacle.requested else ""
    if obstacle.kind is ObstacleKind.SIZE:
        return f"nodes of at most {limit} {obstacle.key}{needs}"
    return f"limit of {limit} {obstacle.key}, {format_amount(obstacle.key, obstacle.used)} used{needs}"


def _about_others(autoscaling: Autoscaling, at: datetime | None, is_brief: bool) -> Iterable[Sequence[Words]]:
    """What is known about claims, node groups, and the autoscalers themselves; and what was not read."""
    of = f" (status from {ago(autoscaling.status_at, at).strip()})" if autoscaling.status_at is not None else ""
    if autoscaling.is_healthy is False:
        yield [Span(f"Cluster Autoscaler calls the cluster unhealthy, and does not scale it{of}", "warn")]
    if at is not None and autoscaling.status_at is not None and at - autoscaling.status_at > _STALE:
        written = ago(autoscaling.status_at, at).strip()
        yield [Span(f"Cluster Autoscaler last wrote its status {written}, and may not be running", "warn")]
    groups = [words for group in autoscaling.node_groups if (words := _node_group(group, is_brief))]
    claims = [_node_claim(each, at, is_brief) for each in autoscaling.claims]
    reports = [
        f"{_heading(each, at)}{each.message or each.reason}{f' ({each.about})' if each.about else ''}"
        for each in autoscaling.reports
    ]
    if is_brief:
        # The status of node groups says what failed scale-ups led to.
        reports, of = ([] if groups else reports), ""
    lines = [*claims, *(f"{each}{'' if number else of}" for number, each in enumerate(groups)), *reports]
    shown = [_shortened(line) for line in lines[:_OTHERS_SHOWN]] if is_brief else lines
    yield from ([line] for line in shown)
    if left := len(lines) - len(shown):
        yield [Span(f"{left:,} more (-v)", "dim")]
    yield from ([Span(words, "warn")] for words in _not_read(autoscaling, is_brief))


def _node_group(group: NodeGroupState, is_brief: bool) -> str:
    """What keeps a node group from growing, or that it grows; empty if there is nothing to say."""
    facts = []
    if group.size is not None and group.max_size is not None and group.size >= group.max_size:
        facts.append(f"at its maximum of {count(group.max_size, 'node')}")
    if group.scale_up == _BACKOFF:
        error = ": ".join(filter(None, (group.error_code, "" if is_brief else group.error_message)))
        facts.append(f"in backoff after a failed scale-up{f' ({error})' if error else ''}")
    if _UNHEALTHY in (group.health, group.scale_up):
        facts.append("unhealthy")
    if group.scale_up == _IN_PROGRESS:
        facts.append("a scale-up is in progress")
    return f"node group {group.name}: {', '.join(facts)}" if facts else ""


def _node_claim(claim: NodeClaimState, at: datetime | None, is_brief: bool) -> str:
    seconds = int((at - claim.created).total_seconds()) if at is not None and claim.created is not None else None
    since = f" after {format_duration(seconds)}" if seconds is not None and seconds >= 0 else ""
    why = "" if is_brief else claim.message or claim.reason
    of = f" of NodePool {claim.pool}" if claim.pool and not is_brief else ""
    return f"NodeClaim {claim.name}{of}: not {claim.missing.lower()}{since}{f': {why}' if why else ''}"


def _not_read(autoscaling: Autoscaling, is_brief: bool) -> Iterable[str]:
    """A sentence per kind that was not read, with what helps."""
    for each in autoscaling.not_read:
        name, resource, command = _KINDS.get(each.kind, (each.kind, each.kind, ""))
        verb = agree(1 if each.kind == "ConfigMap" else 2, "is")
        if each.status == FORBIDDEN:
            yield f"{name} {verb} not read (403); missing permission: list {resource}"
        elif each.status != ABSENT:
            yield f"{name} could not be read"
        elif not (is_brief and each.kind != "NodePool"):
            yield f"{name} {verb} not in the snapshot ({command})"
