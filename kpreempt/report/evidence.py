"""What plugins saw, in words: the numbers behind an "Insufficient", the taint, the pod that holds a port.

Also the outcome of a pod in a word or two, and the assumptions at the end of a report. Phrases about nodes are short
enough to follow a name, and none ends with a period.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from kpreempt.model.meta import grouped
from kpreempt.report.amounts import agree, count, format_amount
from kpreempt.report.blocks import Listing, Phrase, Section, Sentence, Span, Tone, Words
from kpreempt.verdict import Assumption, AssumptionKind, BudgetUse, ClusterSummary, Code, Detail, Outcome, Status
from kpreempt.verdict.details import (
    EXTENDED_RESOURCES,
    AffinityConflict,
    ClaimUnavailable,
    InsufficientDevices,
    InsufficientResources,
    MissingFeatures,
    NodeAffinityMismatch,
    NodeNameMismatch,
    PluginFinding,
    PortConflict,
    RejectingSelector,
    Shortfall,
    SpreadConflict,
    UntoleratedTaint,
    VolumeConflict,
    VolumeLimitExceeded,
)
from kpreempt.verdict.status import is_permanent
from kpreempt.verdict.unread import absent_sentence, assumption_text, lacks, permission_first


class OutcomeWords(NamedTuple):
    """An outcome in words: ``alone`` is used without a number of pods, ``short`` in or above a column."""

    words: str
    style: Tone
    alone: str
    short: str


# From best to worst, with what is uncertain in between.
OUTCOMES = {
    Outcome.LANDS: OutcomeWords("lands", "good", "lands", "lands"),
    Outcome.PREEMPTS: OutcomeWords("preempts", "warn", "preempts", "preempts"),
    Outcome.PREEMPTS_VIOLATING_BUDGETS: OutcomeWords("preempts", "bad", "violates budgets", "violates"),
    Outcome.UNCERTAIN: OutcomeWords("uncertain", "warn", "uncertain", "uncertain"),
    Outcome.WAITS_FOR_VICTIMS: OutcomeWords("waits for victims", "warn", "waits for victims", "waits"),
    Outcome.UNSCHEDULABLE: OutcomeWords("unschedulable", "bad", "unschedulable", "pending"),
    Outcome.REJECTED: OutcomeWords("rejected", "bad", "rejected", "rejected"),
    Outcome.NOT_SCHEDULED: OutcomeWords("not scheduled", "warn", "not scheduled", "held"),
}
_MAX_NAMES = 3
_MAX_VALUES = 5
# Amounts that differ by less than this share are shown exactly, so that they do not look equal.
_CLOSE = 100


def describe(detail: Detail | None) -> str:
    """What the plugin saw on one node; empty if it recorded nothing."""
    return "" if detail is None else _PHRASES[type(detail)](detail)


def describe_shortage(status: Status) -> str:
    """What a node lacks, or what rejects the pod there, in a few words: ``needs 500m more cpu, 1Gi more memory``."""
    detail = status.detail
    if isinstance(detail, InsufficientResources) and detail.shortfalls:
        amounts = [
            f"{format_amount(shortfall.resource, shortfall.missing)} more {shortfall.resource}"
            for shortfall in detail.shortfalls
            if shortfall.resource != "pods"
        ]
        slots = ["no pod slot left"] if len(amounts) < len(detail.shortfalls) else []
        return ", ".join([*slots, *([f"needs {join_names(amounts, limit=len(amounts))}"] if amounts else [])])
    return describe(detail) or status.message or str(status.code)


def join_names(names: Sequence[str], *, limit: int = _MAX_NAMES) -> str:
    """``a``, ``a and b``, ``a, b, c and 4 more``."""
    if len(names) > limit:
        return f"{', '.join(names[:limit])} and {len(names) - limit:,} more"
    return " and ".join(part for part in (", ".join(names[:-1]), names[-1]) if part) if names else "none"


def by_text(texts: Mapping[str, str]) -> dict[str, list[str]]:
    """The keys by their text, most frequent text first."""
    return dict(sorted(grouped(texts, texts.__getitem__).items(), key=lambda group: -len(group[1])))


def format_budgets(budgets: Sequence[BudgetUse]) -> Phrase:
    """``web (2→1)`` for every budget that covers the pod; overdrawn budgets are marked."""
    parts: list[Span] = []
    for use in budgets:
        if parts:
            parts.append(Span(", "))
        text = f"{bare_name(use.budget)} ({use.allowed:,}→{use.remaining:,})"
        parts.append(Span(f"{text} VIOLATED", "bad") if use.remaining < 0 else Span(text))
    return tuple(parts)


def bare_name(key: str) -> str:
    """A budget's name without its namespace, which is always the pod's."""
    return key.rpartition("/")[2]


def describe_shortfall(shortfall: Shortfall, pods: int = 0) -> str:
    """``cpu: requests 2, 500m free of 4 (3.5 used by 6 pods)``; the pods are omitted if their number is 0."""
    name, requested, allocatable = shortfall.resource, shortfall.requested, shortfall.allocatable
    if name == "pods":
        return f"{shortfall.used:,} of {allocatable:,} pod slots used"
    free = allocatable - shortfall.used
    close = abs(requested - (allocatable if shortfall.exceeds_node else free)) * _CLOSE < abs(requested)

    def amount(value: int) -> str:
        return format_amount(name, value, exact=close)

    if shortfall.exceeds_node:
        total = f"{amount(allocatable)} in total" if allocatable else "none"
        return f"{name}: requests {amount(requested)}, the node has {total}"
    used = f"{amount(shortfall.used)} used" + (f" by {count(pods, 'pod')}" if pods else "")
    return f"{name}: requests {amount(requested)}, {amount(max(free, 0))} free of {amount(allocatable)} ({used})"


# What the taint of a controller or an autoscaler says about its node.
_CONDITIONS = {
    "node.kubernetes.io/not-ready": "is not ready",
    "node.kubernetes.io/unreachable": "is unreachable",
    "node.kubernetes.io/memory-pressure": "is under memory pressure",
    "node.kubernetes.io/disk-pressure": "is under disk pressure",
    "node.kubernetes.io/pid-pressure": "is under PID pressure",
    "node.kubernetes.io/network-unavailable": "has no network",
    "node.kubernetes.io/out-of-service": "is out of service",
    "node.cloudprovider.kubernetes.io/uninitialized": "is uninitialized",
    "node.cloudprovider.kubernetes.io/shutdown": "is shut down",
    "ToBeDeletedByClusterAutoscaler": "is being removed by Cluster Autoscaler",
    "DeletionCandidateOfClusterAutoscaler": "may be removed by Cluster Autoscaler",
    "karpenter.sh/disruption": "is being removed by Karpenter",
    "karpenter.sh/disrupted": "is being removed by Karpenter",
    "karpenter.sh/unregistered": "is not registered with Karpenter yet",
    "node-role.kubernetes.io/control-plane": "is of the control plane",
    "node-role.kubernetes.io/master": "is of the control plane",
}


def condition_of_taint(key: str) -> str:
    """What a taint with this key says about its node, as a clause about it: ``is not ready``; empty if unknown."""
    return _CONDITIONS.get(key, "")


# A node that PreFilter plugins exclude; versions before 1.32 give no reason.
_EXCLUDED = re.compile(r"node\(s\) didn't satisfy plugin\(s\) \[([^\], ]*)")


def rejection_of(status: Status, restricted_by: Sequence[str] = ()) -> str:
    """Why a node rejects the pod, as a clause about the node: ``is too full``.

    ``restricted_by`` are the plugins that limited the pod to some nodes before any filter ran.
    """
    if isinstance(status.detail, UntoleratedTaint) and (condition := condition_of_taint(status.detail.key)):
        return condition
    if isinstance(status.detail, InsufficientResources):
        # A node is not small because it has no devices of a kind.
        missing = [each.resource for each in status.detail.shortfalls if "/" in each.resource and not each.allocatable]
        if missing:
            return f"offers no {missing[0]}"
    plugin = status.plugin
    if excluded := _EXCLUDED.match(status.message):
        plugin = excluded[1]
    elif not (plugin or status.message):
        plugin = next(iter(restricted_by), "")
    words = _WORDS.get(plugin)
    if words is not None:
        is_hopeless = status.code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE or is_permanent(status)
        return words.hopeless if words.hopeless and is_hopeless else words.rejection
    return f"says {status.message}" if status.message else "gives no reason"


def in_plural(clause: str) -> str:
    """A clause on one node, made plural: ``are too full`` for ``is too full``."""
    verb, _, rest = clause.partition(" ")
    return f"{agree(2, verb)} {rest}".rstrip()


def _resources(detail: InsufficientResources) -> str:
    if len(detail.shortfalls) == 1:
        return describe_shortfall(detail.shortfalls[0], detail.pods)
    parts = [describe_shortfall(shortfall) for shortfall in detail.shortfalls]
    if detail.pods and not any(shortfall.resource == "pods" for shortfall in detail.shortfalls):
        parts.append(f"{count(detail.pods, 'pod')} on the node")
    return "; ".join(parts)


def _taint(detail: UntoleratedTaint) -> str:
    value = f"={detail.value}" if detail.value else ""
    return f"taint {detail.key}{value}:{detail.effect}"


def _port(detail: PortConflict) -> str:
    address = f"{detail.host_ip}:" if detail.host_ip and detail.host_ip != "0.0.0.0" else ""  # noqa: S104 - compared, not bound
    holders = f" is used by {join_names(detail.holders)}" if detail.holders else " is in use"
    return f"host port {address}{detail.port}/{detail.protocol}{holders}"


def _affinity(detail: AffinityConflict) -> str:
    domain = f"{detail.topology_key}={detail.topology_value}" if detail.topology_value else detail.topology_key
    if detail.rule == "affinity":
        if not detail.topology_value:
            return f"the node has no label {detail.topology_key}, the topology key of the pod's affinity"
        return f"no pod matches the pod's required affinity ({detail.selector}) in {domain}"
    nodes = dict(zip(detail.holders, detail.holder_nodes, strict=False))
    holders = join_names([f"{pod} on {nodes[pod]}" if pod in nodes else pod for pod in detail.holders])
    if detail.rule == "antiAffinity":
        return f"the pod's anti-affinity ({detail.selector}) conflicts with {holders} in {domain}"
    return f"the anti-affinity of {holders} ({detail.selector}) conflicts with the pod in {domain}"


def _spread(detail: SpreadConflict) -> str:
    if not detail.topology_value:
        return f"the node has no label {detail.topology_key}"
    fewest = [domain for domain, number in detail.counts.items() if number == detail.minimum]
    least = f"{join_names(fewest)} {agree(len(fewest), 'has')} {detail.minimum:,}"
    if not fewest:
        short = f", because there are fewer than {detail.min_domains} domains" if detail.min_domains else ""
        least = f"the minimum is {detail.minimum:,}{short}"
    return (
        f"{detail.topology_key}={detail.topology_value} would have {count(detail.count + detail.self_match, 'pod')} "
        f"and {least}: skew {detail.skew:,} exceeds maxSkew {detail.max_skew:,}"
    )


def _volume(detail: VolumeConflict) -> str:
    subject = " ".join(
        part for part in (detail.claim and f"claim {detail.claim}", detail.volume and f"volume {detail.volume}") if part
    )
    holders = f"used by {join_names(detail.holders)}" if detail.holders else ""
    return ": ".join(part for part in (subject, ", ".join(part for part in (detail.problem, holders) if part)) if part)


def _volume_limit(detail: VolumeLimitExceeded) -> str:
    return f"{detail.driver}: {detail.used:,} of {detail.limit:,} volumes attached; the pod adds {detail.requested:,}"


def describe_devices(detail: InsufficientDevices) -> str:
    """``8 devices match; 8 are allocated, 6 of them to lower-priority pods``."""
    number = f"{detail.matching:,}" if detail.matching else "no"
    parts = [f"{number} {'device' if detail.matching < 2 else 'devices'} {agree(max(detail.matching, 1), 'matches')}"]
    if detail.published == 0:
        parts = ["no ResourceSlice has a device for the node"]
    parts += map(selector_in_words, detail.rejecting)
    if detail.allocated:
        lower = detail.allocated_to_lower
        of_them = "" if lower == detail.allocated else f"{lower:,} of them "
        to_lower = f", {of_them}to lower-priority pods" if lower else ""
        parts.append(f"{detail.allocated:,} {agree(detail.allocated, 'is')} allocated{to_lower}")
    if detail.tainted:
        parts.append(f"{detail.tainted:,} {agree(detail.tainted, 'has')} an untolerated taint")
    parts += [f"pool {join_names(detail.updating)} is being updated"] if detail.updating else []
    parts += [f"pool {join_names(detail.invalid)}"] if detail.invalid else []
    return "; ".join(parts)


def selector_in_words(selector: RejectingSelector) -> str:
    """``the claim's selector rejects 2 devices: productName is L40S (2)``."""
    owner = "the class's selector" if selector.is_of_class else "the claim's selector"
    values = [
        f"{name.rpartition('/')[2]} is "
        + join_names([f"{value or 'missing'} ({number:,})" for value, number in numbers.items()], limit=_MAX_VALUES)
        for name, numbers in selector.values.items()
    ]
    rejects = f"{owner} rejects {count(selector.rejected, 'device')}"
    return f"{rejects}{f': {join_names(values)}' if values else ''}"


def devices_in_a_sentence(detail: InsufficientDevices) -> str:
    """``all 8 matching devices are allocated, 6 of them to lower-priority pods``."""
    if (
        not detail.matching
        or detail.allocated != detail.matching
        or detail.tainted
        or detail.updating
        or detail.invalid
    ):
        return describe_devices(detail)
    number = {1: "the only matching device is", 2: "both matching devices are"}.get(
        detail.matching, f"all {detail.matching:,} matching devices are"
    )
    lower = detail.allocated_to_lower
    of_them = "" if lower == detail.allocated else f"{lower:,} of them "
    return f"{number} allocated{f', {of_them}to lower-priority pods' if lower else ''}"


def _devices(detail: InsufficientDevices) -> str:
    number = f"{detail.requested:,}" if detail.requested else "all"
    requested = (
        f"one of {detail.alternatives:,} alternatives" if detail.alternatives else f"{number} of {detail.device_class}"
    )
    claim = "" if detail.claim.endswith(f"/{EXTENDED_RESOURCES}") else f"claim {detail.claim}, "
    holders = list(dict.fromkeys(pod for each in detail.holders for pod in each.pods))
    held = f"; used by {join_names(holders)}" if holders else ""
    return f"{claim}request {detail.request} for {requested}: {describe_devices(detail)}{held}"


def _claim(detail: ClaimUnavailable) -> str:
    if detail.reachable_from:
        return f"the devices of claim {detail.claim} are reachable only from {' or '.join(detail.reachable_from)}"
    return f"the devices of claim {detail.claim} could not be prepared"


def _finding(detail: PluginFinding) -> str:
    facts = ", ".join(f"{name} {_fact(value)}" for name, value in detail.facts.items())
    return f"{detail.summary} ({facts})" if detail.summary and facts else detail.summary or facts


def _fact(value: str | float) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)


class _Words(NamedTuple):
    """How a plugin's rejection reads: a clause about the node, and the text for the detail.

    ``hopeless`` is the clause if the rejection is permanent and then reads differently.
    """

    rejection: str
    detail: type
    phrase: Callable[[Any], str]
    hopeless: str = ""


_WORDS = {
    "NodeUnschedulable": _Words("is cordoned", UntoleratedTaint, _taint),
    "NodeName": _Words(
        "is not the one in spec.nodeName", NodeNameMismatch, lambda detail: f"spec.nodeName is {detail.node_name}"
    ),
    "TaintToleration": _Words("has an untolerated taint", UntoleratedTaint, _taint),
    "NodeAffinity": _Words(
        "does not match the pod's node affinity",
        NodeAffinityMismatch,
        lambda detail: (
            f"{detail.source} {'requires ' if detail.unmet else ''}{'; '.join(detail.unmet) or 'does not match'}"
        ),
    ),
    "NodePorts": _Words("has the host port in use", PortConflict, _port),
    "NodeResourcesFit": _Words("is too full", InsufficientResources, _resources, hopeless="is too small"),
    "VolumeRestrictions": _Words("has a volume conflict", VolumeConflict, _volume),
    "NodeVolumeLimits": _Words("has too many volumes attached", VolumeLimitExceeded, _volume_limit),
    "EBSLimits": _Words("has too many volumes attached", VolumeLimitExceeded, _volume_limit),
    "GCEPDLimits": _Words("has too many volumes attached", VolumeLimitExceeded, _volume_limit),
    "AzureDiskLimits": _Words("has too many volumes attached", VolumeLimitExceeded, _volume_limit),
    "CinderLimits": _Words("has too many volumes attached", VolumeLimitExceeded, _volume_limit),
    "VolumeBinding": _Words("has no volume for the pod's claims", VolumeConflict, _volume),
    "VolumeZone": _Words("is in the wrong zone for the pod's volumes", VolumeConflict, _volume),
    "PodTopologySpread": _Words("violates a topology spread constraint", SpreadConflict, _spread),
    "InterPodAffinity": _Words("violates a pod affinity rule", AffinityConflict, _affinity),
    "DynamicResources": _Words("lacks devices for the pod's claims", InsufficientDevices, _devices),
    "NodeDeclaredFeatures": _Words(
        "lacks a feature that the pod needs",
        MissingFeatures,
        lambda detail: f"the node does not declare {join_names(detail.features)}",
    ),
}
_PHRASES: dict[type, Callable[[Any], str]] = {
    **{words.detail: words.phrase for words in _WORDS.values()},
    ClaimUnavailable: _claim,
    PluginFinding: _finding,
}


# Unreadable objects come first; notes, and what the first lines already mention, come last.
_ORDER_SHOWN = {AssumptionKind.UNREADABLE: 0, AssumptionKind.NOTE: 2, AssumptionKind.ABSENT: 2}
# The priority of the last section of a screen.
_ASSUMED = 10
_WHAT_IF = 11
_LINES_SHOWN = 4


def assumption_sections(assumptions: Sequence[Assumption], *, shown: int = _LINES_SHOWN) -> list[Section]:
    """The sections on the input.

    ``WHAT IF``: changes that were requested. ``ASSUMED``: what is not evaluated and could change the answer. ``FILES``:
    files without objects.
    """
    listed = [each for each in assumptions if each.lists_files]
    requested = [each for each in assumptions if each.kind is AssumptionKind.WHAT_IF]
    others = [each for each in assumptions if each.kind.is_assumed]
    first: Words = ""
    if others:
        most_important = permission_first(min(others, key=lambda each: _ORDER_SHOWN.get(each.kind, 1)))
        several = f"{count(len(others), 'assumption')} (-v); the first: " if len(others) > 1 else ""
        first = f"{several}{most_important}"
    return [
        Section(
            "WHAT IF",
            blocks=[Listing([[_assumption(each)] for each in requested], noun="change", shown=shown)],
            anchor="what-if",
            is_inline=True,
            priority=_WHAT_IF,
            short=Section("WHAT IF", blocks=[Sentence(_in_one_sentence(requested))], is_inline=True),
        ),
        Section(
            "ASSUMED",
            blocks=[Listing([[_assumption(each)] for each in others], noun="assumption", shown=shown)],
            heading="Assumptions",
            anchor="assumptions",
            is_inline=True,
            style="warn",
            priority=_ASSUMED,
            short=Section("ASSUMED", blocks=[Sentence(first)], is_inline=True, style="warn"),
        ),
        Section(
            "FILES",
            blocks=[Listing([[_assumption(each)] for each in listed], noun="file")],
            is_inline=True,
            priority=_ASSUMED - 1,
        ),
    ]


def _in_one_sentence(requested: Sequence[Assumption]) -> str:
    """The requested changes, without repeating what they change: ``Node a: cordoned, label b=c added; Node d: …``."""
    by_subject = grouped(requested, lambda each: each.subject)
    return "; ".join(
        f"{subject}: {', '.join(each.message for each in changes)}" for subject, changes in by_subject.items()
    )


def size_facts(cluster: ClusterSummary, assumptions: Sequence[Assumption]) -> list[str]:
    """``4 nodes`` and ``9 pods``, or ``no nodes read`` if that is why there are none."""
    sizes = {"Node": cluster.nodes, "Pod": cluster.pods}
    return [
        count(number, kind.lower()) if number or not lacks(assumptions, kind) else f"no {kind.lower()}s read"
        for kind, number in sizes.items()
    ]


def absent_facts(assumptions: Sequence[Assumption]) -> list[Words]:
    """The kinds that are missing in the input although they could change the answer; empty if there are none."""
    absent = absent_sentence(assumptions)
    return [Span(absent, "warn")] if absent else []


def _assumption(assumption: Assumption) -> Phrase:
    return (assumption_text(assumption),)
