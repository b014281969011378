"""What a scheduler's message about a pod says, part by part, in the wordings of kube-scheduler 1.18 to 1.37.

Read in ``k8s.io/kubernetes`` from v1.18.20 to v1.37.1: ``pkg/scheduler/framework/types.go`` (``FitError``, in 1.18
``core/generic_scheduler.go``), ``schedule_one.go``, the plugins' ``ErrReason``s, ``framework/preemption`` and
``plugins/defaultpreemption``, and ``pkg/controller/volume/scheduling``. 1.19 was not read; where it matters, a wording
of 1.18 that 1.20 lacks counts as one of both.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec

from kpreempt.analysis.pending.states import counts_in, split_preemption
from kpreempt.model.event import counted_nodes
from kpreempt.verdict.status import FOUND_PLACEMENT
from kpreempt.verdict.waiting import MessageForm, MessageReason, ReasonTopic, SchedulerMessage

# The scheduler cuts the message of an event at 1,024 characters; conditions may be longer.
_LONGEST = 32_768
_CUT = " ..."
_NAME = r"[\w.:/-]{1,317}"
_TAINT = rf"\{{(?P<key>{_NAME}): (?P<value>[\w.-]{{0,63}})\}}"
_QUOTED = rf"\"(?P<subject>{_NAME})\""
_SPREAD = r"node\(s\) didn't match pod topology spread constraints"
_T = ReasonTopic
# Reasons about the pod itself: up to 1.26 they are counted for every node, and later not at all.
_OF_POD = frozenset(
    (
        *(_T.CLAIM_UNBOUND, _T.CLAIM_MISSING, _T.CLAIM_DELETED, _T.CLAIM_LOST, _T.CLAIM_EPHEMERAL, _T.STORAGE_CLASS),
        *(_T.DEVICE_CLAIM, _T.DEVICE_CLASS, _T.GATES, _T.GANG),
    )
)


class _Wording(NamedTuple):
    topic: ReasonTopic
    pattern: re.Pattern[str]
    since: str = ""
    until: str = ""


def _wording(topic: ReasonTopic, pattern: str, since: str = "", until: str = "") -> _Wording:
    # ``(repeated N times)`` was appended to reasons that are equal for a node.
    return _Wording(topic, re.compile(rf"(?:{pattern})(?: \(repeated \d{{1,9}} times\))?"), since, until)


# The first one that matches the whole reason counts.
_WORDINGS = (
    _wording(_T.RESOURCE, rf"Insufficient (?P<subject>{_NAME})"),
    _wording(_T.TOO_MANY_PODS, r"Too many pods"),
    _wording(_T.TAINT, r"node\(s\) had untolerated taint\(s\)", "1.34"),
    _wording(_T.TAINT, rf"node\(s\) had untolerated taint {_TAINT}", "1.24", "1.33"),
    _wording(_T.TAINT, rf"node\(s\) had taint {_TAINT}, that the pod didn't tolerate", "", "1.23"),
    _wording(_T.TAINT, r"node\(s\) had taints that the pod didn't tolerate", "", "1.18"),
    _wording(_T.CORDONED, r"node\(s\) were unschedulable"),
    _wording(_T.NODE_AFFINITY, r"node\(s\) didn't match Pod's node affinity/selector", "1.21"),
    _wording(_T.NODE_AFFINITY, r"node\(s\) didn't match Pod's node affinity", "1.20", "1.20"),
    _wording(_T.NODE_AFFINITY, r"node\(s\) didn't match node selector", "", "1.19"),
    _wording(_T.ENFORCED_AFFINITY, r"node\(s\) didn't match scheduler-enforced node affinity", "1.20"),
    _wording(
        _T.ENFORCED_AFFINITY, r"node\(s\) didn't (?:have the requested labels|match service affinity)", "", "1.22"
    ),
    _wording(_T.NODE_NAME, r"node\(s\) didn't match the requested node name", "1.21"),
    _wording(_T.NODE_NAME, r"node\(s\) didn't match the requested hostname", "", "1.20"),
    _wording(_T.NOT_CONSIDERED, r"node\(s\) didn't satisfy plugin\(s\) \[(?P<subject>[\w ./-]{1,500})\]", "1.32"),
    _wording(
        _T.NOT_CONSIDERED,
        r"node\(s\) didn't satisfy plugin(?:\(s\) \[(?P<subject>[\w ./-]{1,500})\] simultaneously"
        rf"| (?P<key>{_NAME}))",
        "1.24",
    ),
    _wording(_T.PORTS, r"node\(s\) didn't have free ports for the requested pod ports"),
    _wording(_T.SPREAD_LABEL, rf"{_SPREAD} \(missing required label\)", "1.20"),
    _wording(_T.SPREAD, _SPREAD),
    _wording(_T.POD_AFFINITY, r"node\(s\) didn't match pod affinity rules"),
    _wording(_T.POD_ANTI_AFFINITY, r"node\(s\) didn't match pod anti-affinity rules"),
    _wording(_T.EXISTING_ANTI_AFFINITY, r"node\(s\) didn't satisfy existing pods anti-affinity rules"),
    _wording(_T.ANY_POD_AFFINITY, r"node\(s\) didn't match pod affinity/anti-affinity rules", "1.21", "1.21"),
    _wording(_T.ANY_POD_AFFINITY, r"node\(s\) didn't match pod affinity/anti-affinity", "", "1.20"),
    _wording(_T.VOLUME_AFFINITY, r"node\(s\) didn't match PersistentVolume's node affinity", "1.33"),
    _wording(_T.VOLUME_AFFINITY, r"node\(s\) had volume node affinity conflict", "", "1.32"),
    _wording(_T.VOLUME_ZONE, r"node\(s\) had no available volume zone"),
    _wording(_T.NO_VOLUME, r"node\(s\) didn't find available persistent volumes to bind"),
    _wording(_T.STORAGE_SPACE, r"node\(s\) did not have enough free storage", "1.20"),
    _wording(_T.VOLUME_LIMIT, r"node\(s\) exceed max volume count"),
    _wording(_T.VOLUME_IN_USE, r"node\(s\) had no available disk"),
    _wording(
        _T.VOLUME_IN_USE,
        r"node has pod using PersistentVolumeClaim with the same name and ReadWriteOncePod access mode",
        "1.22",
        "1.33",
    ),
    _wording(
        _T.VOLUME_IN_USE,
        r"node\(s\) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by"
        r" another pod",
        "1.34",
    ),
    _wording(_T.DRIVER_MISSING, rf"(?P<subject>{_NAME}) CSI driver is not installed on the node", "1.35"),
    _wording(_T.CLAIM_UNBOUND, r"pod has unbound immediate PersistentVolumeClaims"),
    _wording(_T.CLAIM_MISSING, rf"persistentvolumeclaim {_QUOTED} not found"),
    _wording(_T.CLAIM_MISSING, rf"PersistentVolumeClaim was not found: {_QUOTED}", "", "1.21"),
    _wording(_T.CLAIM_DELETED, rf"persistentvolumeclaim {_QUOTED} is being deleted"),
    _wording(
        _T.CLAIM_LOST,
        rf"persistentvolumeclaim {_QUOTED} bound to non-existent persistentvolume \"{_NAME}\"",
        "1.23",
    ),
    _wording(
        _T.CLAIM_LOST, r"node\(s\) unavailable due to one or more pvc\(s\) bound to non-existent pv\(s\)", "1.23"
    ),
    _wording(_T.CLAIM_LOST, r"pvc\(s\) bound to non-existent pv\(s\)", "", "1.22"),
    _wording(
        _T.CLAIM_EPHEMERAL,
        rf"waiting for ephemeral volume controller to create the persistentvolumeclaim {_QUOTED}",
        "1.23",
    ),
    _wording(
        _T.CLAIM_EPHEMERAL, rf"persistentvolumeclaim {_QUOTED} was not created for the pod", "1.20", "1.22"
    ),
    _wording(_T.STORAGE_CLASS, rf"(?:storageclass\.storage\.k8s\.io|StorageClass) {_QUOTED} not found"),
    _wording(
        _T.STORAGE_CLASS, rf"StorageClass {_QUOTED} claimed by PersistentVolumeClaim \"{_NAME}\" not found"
    ),
    _wording(_T.DEVICES, r"cannot allocate all claims|cannot schedule extended resource claim", "1.31"),
    _wording(_T.DEVICES, r"resourceclaim not available on the node", "1.26"),
    _wording(_T.DEVICES, r"resourceclaim cannot be allocated for the node \(unsuitable\)", "1.26", "1.31"),
    _wording(_T.DEVICE_CLAIM, rf"resourceclaim(?:\.resource\.k8s\.io)? {_QUOTED} not found", "1.26"),
    _wording(_T.DEVICE_CLAIM, rf"resourceclaim {_QUOTED} is being deleted", "1.26"),
    _wording(_T.DEVICE_CLAIM, r"resourceclaim in use", "1.26"),
    _wording(_T.DEVICE_CLAIM, rf"resource claim (?P<subject>{_NAME}) is in the process of being allocated", "1.30"),
    _wording(
        _T.DEVICE_CLAIM,
        rf"waiting for dynamic resource controller to create the resourceclaim {_QUOTED}",
        "1.26",
        "1.27",
    ),
    _wording(_T.DEVICE_CLAIM, rf"pod \"{_NAME}\": ResourceClaim not created yet", "1.28"),
    _wording(_T.DEVICE_CLAIM, rf"resource claim (?P<subject>{_NAME}), request {_NAME}: .{{1,200}}", "1.33"),
    _wording(_T.DEVICE_CLAIM, rf"node allocatable resource claim (?P<subject>{_NAME}) .{{1,100}}", "1.36"),
    _wording(_T.DEVICE_CLASS, rf"request {_NAME}: device class (?P<subject>{_NAME}) does not exist", "1.31"),
    _wording(_T.DEVICE_CLASS, rf"resource class (?P<subject>{_NAME}) does not exist", "1.29", "1.30"),
    _wording(_T.FEATURES, r"node\(s\) didn't match Pod's required features.{0,500}", "1.36"),
    _wording(_T.GATES, r"waiting for scheduling gates: \[(?P<subject>[\w ./-]{0,1000})\]", "1.26"),
    _wording(_T.GATES, r"Scheduling is blocked due to non-empty scheduling gates", "1.26"),
    _wording(
        _T.GANG,
        rf"waiting for (?:minCount pods from a gang|(?:pods's|composite) (?:pod group|workload) {_QUOTED}) .{{1,100}}",
        "1.35",
    ),
    _wording(_T.NO_VICTIMS, r"No preemption victims found for incoming (?:pod|preemptor)", "1.24"),
    _wording(_T.NOT_HELPFUL, r"Preemption is not helpful for scheduling", "1.21"),
    _wording(_T.NEVER, r"not eligible due to preemptionPolicy=Never", "1.24"),
    _wording(_T.TERMINATING_VICTIM, r"not eligible due to a terminating pod on the nominated node", "1.24"),
    _wording(_T.TERMINATING_VICTIM, r"waiting for the preemption for this pod(?: group)? to be finished", "1.32"),
    _wording(_T.NO_CANDIDATE, r"no candidate node for preemption", "1.24"),
    _wording(_T.PREEMPTS, rf"{FOUND_PLACEMENT}(?P<subject>{_NAME}), preempting \d{{1,9}} victims", "1.37"),
)  # fmt: skip

# Messages that count no nodes. A group ``plugin`` is the plugin that it names.
_FORMS = tuple(
    (form, re.compile(pattern, re.DOTALL))
    for form, pattern in (
        (MessageForm.NO_NODES, r"no nodes available to schedule pods"),
        (MessageForm.BEING_DELETED, r"skip schedule deleting pod: .*"),
        (MessageForm.PERMIT, r"(?:rejected due to timeout after waiting \S+ at plugin (?P<plugin>[\w.-]+)).*"),
        (MessageForm.PERMIT, r"(?:rejected )?pod \"[^\"]*\" (?:rejected while waiting on permit|by permit plugin).*"),
        (MessageForm.BINDING, r"running (?:PreBind|Bind|Reserve) plugin \"(?P<plugin>[\w.-]+)\": .*"),
        (MessageForm.BINDING, r"[Bb]inding rejected: .*|binding volumes: .*|AssumePod failed: .*"),
        (
            MessageForm.PLUGIN_ERROR,
            r"(?:error while )?running (?:\w+ plugin )?\"(?P<plugin>[\w.-]+)\"(?: \w+ plugin(?: for pod \"[^\"]*\")?)?"
            r"(?::| ).*",
        ),
        (MessageForm.PLUGIN_ERROR, r"rejected by \"(?P<plugin>[\w.-]+)\" at prefilter: .*"),
    )
)
_NODES = re.compile(r"(?P<feasible>\d{1,9})/(?P<nodes>\d{1,9}) nodes are available:")
# What a plugin of PostFilter other than DefaultPreemption says after the reasons; it ends the attempt if it fails.
_POST_FILTER = re.compile(r"\. (?P<text>[^.\d][^.]{0,200})\.?$")
# Messages of other programs, some of which reuse the code of kube-scheduler.
_OTHERS = tuple(
    (scheduler, re.compile(pattern))
    for scheduler, pattern in (
        ("Volcano", r"\d{1,9}/\d{1,9} tasks in gang unschedulable: "),
        ("Volcano", r"all nodes are unavailable: |\d{1,9}/\d{1,9} nodes are unavailable"),
        ("Volcano", r"pod group is not ready, "),
        ("Karpenter", r"Failed to schedule pod, "),
        ("Kueue", r"couldn't assign flavors to pod set "),
    )
)  # fmt: skip


def explain_message(message: str) -> SchedulerMessage | None:
    """Return what a scheduler's message says, or ``None`` if it has no known form.

    Pure: it knows no cluster. The text may be an event's or a condition's.
    """
    text = " ".join(message[:_LONGEST].split())
    is_cut = text.endswith(_CUT) or len(message) > _LONGEST
    text = text.removesuffix(_CUT)
    if counted := _NODES.match(text):
        return _no_fit(text, counted, is_cut)
    for scheduler, pattern in _OTHERS:
        if pattern.match(text):
            return SchedulerMessage(message=text, form=MessageForm.OTHER_SCHEDULER, scheduler=scheduler, is_cut=is_cut)
    for form, pattern in _FORMS:
        if match := pattern.fullmatch(text):
            return SchedulerMessage(
                message=text, form=form, plugin=match.groupdict().get("plugin") or "", is_cut=is_cut
            )
    reason = reason_of(text.rstrip("."))
    if reason.topic is ReasonTopic.OTHER:
        return None
    is_waiting = reason.topic in (_T.GATES, _T.GANG, _T.TERMINATING_VICTIM)
    form = MessageForm.WAITS if is_waiting else MessageForm.NOT_TRIED
    return _limited(SchedulerMessage(message=text, form=form, reasons=[reason], is_cut=is_cut))


def reason_of(text: str, nodes: int | None = None) -> MessageReason:
    """Return what one reason says that ``nodes`` nodes have."""
    for each in _WORDINGS:
        if match := each.pattern.fullmatch(text):
            found = match.groupdict()
            subject = found.get("subject") or "=".join(filter(None, (found.get("key"), found.get("value"))))
            return MessageReason(
                text=text, topic=each.topic, nodes=nodes, subject=subject, since=each.since, until=each.until
            )
    return MessageReason(text=text, topic=ReasonTopic.OTHER, nodes=nodes)


def _no_fit(text: str, counted: re.Match[str], is_cut: bool) -> SchedulerMessage:
    head, preemption = split_preemption(text)
    post_filter = None if preemption or is_cut else _POST_FILTER.search(head)
    if post_filter is not None:
        head = head[: post_filter.start() + 1]
    counts = _counts(head, is_cut=is_cut and not preemption)
    nodes = counted_nodes(text)
    reasons = [reason_of(reason, number) for reason, number in counts.items()]
    before = head[counted.end() :].strip().rstrip(".")
    if not reasons and before:
        reasons = [reason_of(before)]
    is_about_pod = len(reasons) == 1 and reasons[0].topic in _OF_POD and reasons[0].nodes in (None, nodes)
    after = _counts(preemption, is_cut=is_cut)
    return _limited(
        SchedulerMessage(
            message=text,
            form=MessageForm.NOT_TRIED if is_about_pod or (before and not counts) else MessageForm.NO_FIT,
            nodes=nodes,
            counted=sum(counts.values()),
            reasons=reasons,
            has_preemption=bool(preemption),
            post_filter=post_filter["text"] if post_filter is not None else "",
            preemption=[reason_of(reason, number) for reason, number in after.items()]
            or [reason_of(each) for each in (preemption.strip().rstrip("."),) if each],
            is_cut=is_cut,
        )
    )


def _counts(text: str, *, is_cut: bool) -> dict[str, int]:
    """The number of nodes per reason, without the last one if its end is missing."""
    return {reason: number for reason, number in counts_in(text).items() if not (is_cut and text.endswith(reason))}


def _limited(message: SchedulerMessage) -> SchedulerMessage:
    """Add the versions that have all of the message's wordings; none if no version has them."""
    reasons = [*message.reasons, *message.preemption]
    since = max((each.since for each in reasons), default="", key=_minor)
    if message.has_preemption:
        since = max(since, "1.24", key=_minor)
    until = min((each.until for each in reasons if each.until), default="", key=_minor)
    if since and until and _minor(since) > _minor(until):
        since = until = ""
    return msgspec.structs.replace(message, since=since, until=until)


def _minor(version: str) -> int:
    return int(version.partition(".")[2] or 0)
