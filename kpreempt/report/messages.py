"""What messages about pods mean, in words: each reason of the scheduler, what to look at, and what a message lacks."""

from __future__ import annotations

from typing import NamedTuple

from kpreempt.model.meta import slashed
from kpreempt.report.amounts import agree, count
from kpreempt.report.blocks import Block, Listing, Phrase, Rows, Section, Sentence, Span, Words, strong
from kpreempt.report.evidence import condition_of_taint
from kpreempt.report.quoting import message as quoted
from kpreempt.report.quoting import name
from kpreempt.verdict.waiting import MessageForm, MessageReason, ReasonTopic, SchedulerMessage

_T = ReasonTopic
# How many reasons the first sentence names, and how many lines of reasons and of other sections a screen always shows.
_IN_LEAD, _REASON_LINES, _MIN_LINES = 3, 12, 4


class _ReasonWords(NamedTuple):
    """A reason in words: a clause about nodes (``lacks free cpu``), its meaning, and the command that shows more."""

    verb: str
    rest: str
    means: str
    look: str = ""


_DESCRIBE = "kubectl describe nodes"
_LABELS = "kubectl get nodes --show-labels"
_NODES = "kubectl get nodes"
_PODS = "kubectl get pods -A -o wide"
_CLAIMS = "kubectl get pvc -n NAMESPACE"
_CLAIM = "kubectl describe pvc CLAIM -n NAMESPACE"
_VOLUMES = "kubectl describe pv VOLUME"
_POD = "kubectl get pod POD -n NAMESPACE -o yaml"
_OF_CLAIMS = "kubectl get resourceclaims -n NAMESPACE"
_WORDS: dict[ReasonTopic, _ReasonWords] = {
    _T.RESOURCE: _ReasonWords(
        "lacks",
        "free {subject}",
        "requested is more than allocatable minus the requests of the node's pods (not their usage)",
        _DESCRIBE,
    ),
    _T.TOO_MANY_PODS: _ReasonWords(
        "has", "no pod slot left", "as many pods as its allocatable \"pods\" permits, whatever they request", _DESCRIBE
    ),
    _T.TAINT: _ReasonWords(
        "has",
        "a taint that the pod does not tolerate{named}",
        "the pod's tolerations do not match a taint with NoSchedule or NoExecute",
        _DESCRIBE,
    ),
    _T.CORDONED: _ReasonWords(
        "is", "cordoned", "spec.unschedulable is set, by kubectl cordon, kubectl drain or an upgrade", _NODES
    ),
    _T.NODE_AFFINITY: _ReasonWords(
        "does", "not match the pod's nodeSelector or node affinity",
        "its labels do not match the pod's nodeSelector or required nodeAffinity", _LABELS,
    ),
    _T.ENFORCED_AFFINITY: _ReasonWords(
        "does", "not match the affinity in the scheduler's configuration",
        "addedAffinity of plugin NodeAffinity excludes the node for all pods of this scheduler",
        "the KubeSchedulerConfiguration",
    ),
    _T.NODE_NAME: _ReasonWords("is", "not the one in spec.nodeName", "spec.nodeName names another node", _POD),
    _T.NOT_CONSIDERED: _ReasonWords(
        "is", "ruled out by {subject}",
        "{subject} limits the pod to certain nodes by name, for example to the one of its DaemonSet or of its local"
        " volume; the others are not looked at", _POD,
    ),
    _T.PORTS: _ReasonWords(
        "has", "the host port in use", "a pod on the node already uses a hostPort of this pod", _PODS
    ),
    _T.SPREAD: _ReasonWords(
        "violates", "a topology spread constraint",
        "one more pod in the node's domain would exceed maxSkew (DoNotSchedule)", _PODS,
    ),
    _T.SPREAD_LABEL: _ReasonWords(
        "lacks", "the topology key of a spread constraint",
        "the node has no label with the topologyKey of a constraint (DoNotSchedule)", _LABELS,
    ),
    _T.POD_AFFINITY: _ReasonWords(
        "does", "not match the pod's pod affinity",
        "no pod that matches its required podAffinity runs in the node's domain", _PODS,
    ),
    _T.POD_ANTI_AFFINITY: _ReasonWords(
        "violates", "the pod's anti-affinity",
        "a pod that its required podAntiAffinity excludes runs in the node's domain", _PODS,
    ),
    _T.EXISTING_ANTI_AFFINITY: _ReasonWords(
        "violates", "the anti-affinity of another pod",
        "a pod in the node's domain has a required podAntiAffinity that excludes this pod", _PODS,
    ),
    _T.ANY_POD_AFFINITY: _ReasonWords(
        "violates", "a pod affinity rule",
        "another reason in the message says which: each of these nodes counts in both", _PODS,
    ),
    _T.VOLUME_AFFINITY: _ReasonWords(
        "does", "not match the pod's volume",
        "a PersistentVolume of the pod is only reachable from other nodes (spec.nodeAffinity), often a zone or a node"
        " that is gone", _VOLUMES,
    ),
    _T.VOLUME_ZONE: _ReasonWords(
        "is", "in another zone than the pod's volume", "the zone or region label of a PersistentVolume differs",
        _VOLUMES,
    ),
    _T.NO_VOLUME: _ReasonWords(
        "has", "no volume for the pod's claim",
        "an unbound claim waits for its first pod, and no free PersistentVolume fits it on the node, nor can one be"
        " provisioned there", _CLAIMS,
    ),
    _T.STORAGE_SPACE: _ReasonWords(
        "has", "not enough storage for the pod's claim",
        "the CSIStorageCapacity objects of the driver show less space than the claim requests",
        "kubectl get csistoragecapacities -A",
    ),
    _T.VOLUME_LIMIT: _ReasonWords(
        "has", "too many volumes attached", "the volumes of the pod would exceed the limit of the driver (CSINode)",
        "kubectl get csinodes -o yaml",
    ),
    _T.VOLUME_IN_USE: _ReasonWords(
        "has", "the pod's volume in use", "another pod uses the volume in a way that excludes this one", _CLAIM
    ),
    _T.DRIVER_MISSING: _ReasonWords(
        "lacks", "CSI driver {subject}", "the driver of the pod's volume is not registered on the node (CSINode)",
        "kubectl get csinodes -o yaml",
    ),
    _T.CLAIM_UNBOUND: _ReasonWords(
        "waits", "for the pod's claim to be bound",
        "a PersistentVolumeClaim with volumeBindingMode Immediate is not bound: no volume matches it, its StorageClass"
        " is missing, or its provisioner fails", _CLAIM,
    ),
    _T.CLAIM_MISSING: _ReasonWords(
        "waits", "for claim {subject} to be created",
        "the pod names PersistentVolumeClaim {subject}, which does not exist in its namespace", _CLAIMS,
    ),
    _T.CLAIM_DELETED: _ReasonWords(
        "waits", "because claim {subject} is being deleted",
        "PersistentVolumeClaim {subject} is being deleted, and new pods cannot use it", _CLAIM,
    ),
    _T.CLAIM_LOST: _ReasonWords(
        "waits", "for a volume that does not exist",
        "a claim of the pod is bound to a PersistentVolume that no longer exists", _CLAIM,
    ),
    _T.CLAIM_EPHEMERAL: _ReasonWords(
        "waits", "for claim {subject} to be created",
        "the claim of a generic ephemeral volume is created right after the pod; if it stays missing, creation fails",
        "kubectl get events -n NAMESPACE",
    ),
    _T.STORAGE_CLASS: _ReasonWords(
        "waits", "for StorageClass {subject}", "a claim of the pod names a StorageClass that does not exist",
        "kubectl get storageclasses",
    ),
    _T.DEVICES: _ReasonWords(
        "lacks", "devices for the pod's claims",
        "no free device on the node matches all requests of the pod's ResourceClaims", "kubectl get resourceslices",
    ),
    _T.DEVICE_CLAIM: _ReasonWords(
        "waits", "for a ResourceClaim of the pod",
        "a ResourceClaim of the pod is missing, in use, being allocated or being deleted", _OF_CLAIMS,
    ),
    _T.DEVICE_CLASS: _ReasonWords(
        "waits", "for device class {subject}", "a ResourceClaim of the pod names a class that does not exist",
        "kubectl get deviceclasses",
    ),
    _T.FEATURES: _ReasonWords(
        "lacks", "a feature that the pod needs", "the kubelet does not declare it (status.declaredFeatures)", _DESCRIBE
    ),
    _T.GATES: _ReasonWords(
        "waits", "for its scheduling gates{named}",
        "the scheduler ignores the pod until spec.schedulingGates is empty; controllers remove their gates", _POD,
    ),
    _T.GANG: _ReasonWords(
        "waits", "for the other pods of its group", "the scheduler starts when enough pods of the group exist",
        "kubectl get podgroups -n NAMESPACE",
    ),
    _T.OTHER: _ReasonWords(
        "rejects", "it: {text}",
        "not a reason that kpreempt knows from kube-scheduler; usually one of an out-of-tree plugin or an extender",
        "the logs of the scheduler",
    ),
}  # fmt: skip
# What a node means in the part about preemption, after ``on 2 nodes``.
_PREEMPTION: dict[ReasonTopic, str] = {
    _T.NO_VICTIMS: "no pod has a lower priority than this one",
    _T.NOT_HELPFUL: "evictions do not help",
}
# Why evictions would not help on these nodes.
_WHATEVER = " (taint, label, volume, size)"
_PREEMPTION_ALONE: dict[ReasonTopic, str] = {
    _T.NEVER: "the pod evicts no other pods: its preemptionPolicy is Never",
    _T.TERMINATING_VICTIM: "pods were already evicted for it, and it waits until they have terminated",
    _T.NO_CANDIDATE: "the scheduler's extenders rejected every node on which evictions would help",
}
_FORMS: dict[MessageForm, tuple[str, str, str]] = {
    MessageForm.NO_NODES: (
        "has no nodes to choose from",
        "the scheduler knows no node at all: none has joined the cluster, or the scheduler cannot list nodes",
        _NODES,
    ),
    MessageForm.BEING_DELETED: ("is being deleted", "the scheduler skips a pod with a deletionTimestamp", _POD),
    MessageForm.PERMIT: (
        "was held back after a node was chosen",
        "a plugin{plugin} delays pods, usually until all pods of a group fit, and gave up or rejected this one; a node"
        " fits",
        "the other pods of the group",
    ),
    MessageForm.BINDING: (
        "was not bound to the node that was chosen",
        "a node fits, but what follows failed{plugin}: for VolumeBinding, the volume was not provisioned or attached to"
        " the claim in time (10 minutes by default); for others, the API server rejected an update. The scheduler tries"
        " again",
        _CLAIM,
    ),
    MessageForm.PLUGIN_ERROR: (
        "was not scheduled because of an error",
        "a plugin{plugin} failed, which is not about the size of the cluster; the text after its name says why. The"
        " scheduler tries again",
        "the logs of the scheduler",
    ),
}


class PodInMessage(NamedTuple):
    """The pod that a message is about, as far as it is known; names are empty if not."""

    namespace: str = ""
    name: str = ""
    has_priority: bool = False

    @property
    def key(self) -> str:
        """``namespace/name``, as far as they are known."""
        return slashed(self.namespace, self.name)

    @property
    def words(self) -> Span:
        """Its name, or a description."""
        return name(self.key, "strong") if self.name else strong("The pod")


def lead_of_message(message: SchedulerMessage, pod: PodInMessage) -> Phrase:
    """One sentence: what the message says about the pod."""
    subject = pod.words
    match message.form:
        case MessageForm.OTHER_SCHEDULER:
            return (
                subject,
                Span(" was not scheduled", "warn"),
                f"{f' by {message.scheduler}' if message.scheduler else ''}: this is not a message of kube-scheduler.",
            )
        case MessageForm.NOT_TRIED | MessageForm.WAITS if message.reasons:
            reason = message.reasons[0]
            if reason.topic is ReasonTopic.OTHER:
                return (
                    subject,
                    Span(" was rejected before any node was tried", "warn"),
                    ": ",
                    quoted(reason.text),
                    ".",
                )
            words = _WORDS.get(reason.topic)
            rest = f" {words.verb} {_filled(words.rest, reason)}" if words else " waits until its victims are gone"
            return (subject, Span(rest, "warn"), "; this does not depend on nodes.")
        case MessageForm.NO_FIT:
            nodes = f"none of {count(message.nodes, 'node')}" if message.nodes and message.nodes > 1 else "no node"
            clauses = [_clause(each) for each in message.reasons[:_IN_LEAD]]
            left = len(message.reasons) - len(clauses)
            rest = f"; {count(left, 'more reason')}" if left > 0 else ""
            fits = Span(f" fits on {nodes}", "warn")
            return (subject, fits, ": " if clauses else "", ", ".join(clauses), rest, ".")
    # Without reasons, it is not known what the pod waits for.
    said, *_ = _FORMS.get(message.form, ("was not scheduled",))
    return (subject, Span(f" {said}", "warn"), ".")


def message_sections(message: SchedulerMessage, pod: PodInMessage, *, priority: int = 0) -> list[Section]:
    """Each part of the message with its meaning, what it says about preemption, and what to look at next."""
    return [
        Section(
            "REASONS",
            blocks=_reasons(message),
            heading="What each part means",
            is_inline=True,
            priority=priority,
            min_lines=_REASON_LINES,
        ),
        _preemption(message, priority),
        Section(
            "COUNTS",
            blocks=[Sentence(text) for text in _sums(message)],
            heading="The numbers",
            is_inline=True,
            priority=priority and priority - 1,
        ),
        Section(
            "NOT SAID",
            blocks=[Sentence(_not_said(message, pod))] if message.form is MessageForm.NO_FIT else [],
            heading="What the message does not say",
            is_inline=True,
            priority=priority and priority - 2,
        ),
        Section(
            "LOOK AT",
            blocks=[Listing([[each] for each in commands_for(message, pod)], noun="command")],
            heading="What to look at next",
            is_inline=True,
            priority=priority,
            min_lines=_MIN_LINES,
        ),
    ]


def commands_for(message: SchedulerMessage, pod: PodInMessage) -> list[Words]:
    """Commands that show more about the reasons, the one that answers completely first."""
    known = [_WORDS[each.topic].look for each in message.reasons if each.topic in _WORDS]
    if message.form in _FORMS:
        known.append(_FORMS[message.form][2])
    found = dict.fromkeys(_with_names(each, message, pod) for each in known if each)
    return [complete_command(pod), *(Span(each, "code") if each.startswith("kubectl") else each for each in found)]


def complete_command(pod: PodInMessage) -> Phrase:
    """The command that answers completely, if the cluster can be read."""
    command = f"kpreempt explain {pod.name or 'POD'} -n {pod.namespace or 'NAMESPACE'}"
    return (Span(command, "code"), "  (a complete answer)")


def _with_names(command: str, message: SchedulerMessage, pod: PodInMessage) -> str:
    claim = next((each.subject for each in message.reasons if each.subject and "Claim" in each.topic), "")
    for placeholder, value in (("NAMESPACE", pod.namespace), ("POD", pod.name), ("CLAIM", claim)):
        command = command.replace(placeholder, value or placeholder)
    return command


def _clause(reason: MessageReason) -> str:
    """``6 lack free cpu``."""
    words, number = _WORDS.get(reason.topic, _WORDS[_T.OTHER]), reason.nodes or 0
    if condition := condition_of_taint(reason.subject.partition("=")[0]) if reason.topic is _T.TAINT else "":
        verb, _, rest = condition.partition(" ")
        return f"{number:,} {agree(number, verb)} {rest}"
    return f"{number:,} {agree(number, words.verb)} {_filled(words.rest, reason)}"


def _filled(template: str, reason: MessageReason) -> str:
    subject = quoted(reason.subject).text
    named = f" ({subject})" if subject else ""
    return template.replace("{subject}", subject or "it").replace("{named}", named).replace(
        "{text}", quoted(reason.text).text
    )  # fmt: skip


def _reasons(message: SchedulerMessage) -> list[Block]:
    if message.form in _FORMS:
        plugin = f" ({message.plugin})" if message.plugin else ""
        return [Sentence(_FORMS[message.form][1].replace("{plugin}", plugin))]
    if message.form is MessageForm.OTHER_SCHEDULER:
        return [
            Sentence(quoted(message.message)),
            Sentence("the parts are those of another scheduler, an out-of-tree plugin or an extender"),
        ]
    known = [each for each in message.reasons if each.topic in _WORDS]
    if message.form is not MessageForm.NO_FIT:
        return [Sentence(_meaning(each)) for each in known]
    return [Rows([(strong(f"{each.nodes or 0:,} of {message.nodes or 0:,}"), _meaning(each)) for each in known])]


def _meaning(reason: MessageReason) -> Phrase:
    return (quoted(reason.text), ": ", _filled(_WORDS[reason.topic].means, reason))


def _preemption(message: SchedulerMessage, priority: int) -> Section:
    words: list[Words] = []
    for each in message.preemption:
        on = f"on {count(each.nodes, 'node')}, " if each.nodes is not None else ""
        if each.topic in _PREEMPTION_ALONE:
            words.append(_PREEMPTION_ALONE[each.topic])
        elif each.topic is ReasonTopic.PREEMPTS:
            words.append(f"the scheduler evicts pods on {each.subject} for it")
        elif each.topic in _PREEMPTION:
            is_of_nodes = each.topic is ReasonTopic.NOT_HELPFUL and message.form is MessageForm.NO_FIT
            words.append(f"{on}{_PREEMPTION[each.topic]}{_WHATEVER if is_of_nodes else ''}")
        elif each.nodes is not None:
            words.append((f"{on}even without all pods of lower priority: ", quoted(each.text)))
        else:
            words.append(quoted(each.text))
    if message.post_filter:
        words.append(("nothing; another plugin ended the attempt: ", quoted(message.post_filter)))
    elif message.form is MessageForm.NO_FIT and not message.has_preemption and not message.is_cut:
        words.append(
            "not mentioned: normal up to 1.23; since 1.24, pods are being evicted for it, or preemption failed or is"
            " disabled"
        )
    return Section(
        "PREEMPTION",
        blocks=[Sentence(each) for each in words],
        heading="What it says about preemption",
        is_inline=True,
        priority=priority,
        min_lines=_MIN_LINES,
    )


def _sums(message: SchedulerMessage) -> list[str]:
    """What the numbers show: nodes that are counted several times or not at all, or that the message is cut."""
    texts = []
    if message.is_cut:
        texts.append("the message is cut: the scheduler cuts events at 1,024 characters, and reasons are missing")
    elif message.form is MessageForm.NO_FIT and message.nodes and message.reasons:
        more = message.counted - message.nodes
        if more > 0:
            texts.append(
                f"they add up to {message.counted:,} of {count(message.nodes, 'node')}: some nodes have several reasons"
                " and count in each"
            )
        elif more < 0:
            texts.append(
                f"they add up to {message.counted:,} of {count(message.nodes, 'node')}: {-more:,}"
                f" {agree(-more, 'is')} in no reason. Up to 1.31, those are nodes that the pod cannot use by name (a"
                " DaemonSet's, or a local volume's); an extender may have removed them, too"
            )
    return texts


def versions_of(message: SchedulerMessage) -> str:
    """``1.24 to 1.33``, ``1.34 and later``; empty if any version from 1.18 to 1.37 may have written it."""
    if message.since and message.since == message.until:
        return message.since
    if message.since and message.until:
        return f"{message.since} to {message.until}"
    if message.since:
        return f"{message.since} and later"
    return f"{message.until} and earlier" if message.until else ""


def _not_said(message: SchedulerMessage, pod: PodInMessage) -> str:
    topics = {each.topic for each in message.reasons}
    lacks = ["which nodes"]
    if any(each.topic is _T.TAINT and not each.subject for each in message.reasons):
        lacks.append("which taints (omitted since 1.34)")
    if _T.RESOURCE in topics:
        lacks.append("how much is missing")
    if topics & {_T.VOLUME_AFFINITY, _T.VOLUME_ZONE, _T.VOLUME_IN_USE, _T.NO_VOLUME}:
        lacks.append("which volume")
    lacks += ["which pods could be evicted", *([] if pod.has_priority else ["the pod's priority"])]
    return f"{', '.join(lacks[:-1])} and {lacks[-1]}"
