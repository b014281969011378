"""What is reported of a kind that was not read: what it may change, and how to read it.

Code that reads a kind calls ``unread_of``, so that no kind counts against an answer that it cannot change. A kind that
could not be read always counts. Of one that the input has none of, only the decisive ones do: most clusters have none
of the others, and a change of theirs is rarely more than another equal node.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.errors import InputError
from kpreempt.model.cluster import FORBIDDEN, SHORT_NAMES, ClusterSnapshot, KindState, Unread, state_of
from kpreempt.verdict.records import FEATURE_GATE, SETTING_NOT_MODELLED, Assumption, AssumptionKind

# The field of an assumption about a kind as a whole.
LIST = "list"
_SERVER_ERROR = 500

_WITHOUT = {
    "Node": "what a scheduler does there is unknown",
    "Pod": "what is free on the nodes is unknown",
    "PodDisruptionBudget": "budgets may protect victims, and another node may be chosen",
    "PriorityClass": "the priority and preemption policy of a pod that names its class are unknown, and so is the "
    "default of one that names none",
    "Namespace": "affinity terms with a namespaceSelector select nothing",
    "PersistentVolumeClaim": "whether claims of pods are there and bound is unknown",
    "PersistentVolume": "where a bound volume can be reached is unknown",
    "StorageClass": "when and where a claim is bound is unknown",
    "CSINode": "how many volumes a node takes is unknown",
    "CSIDriver": "whether drivers report storage capacity is unknown",
    "CSIStorageCapacity": "where there is room for new volumes is unknown",
    "VolumeAttachment": "volumes that are still attached do not count against a node's limit",
    "RuntimeClass": "the overhead and node selector of runtime classes are left out",
    "LimitRange": "default requests of containers are left out, and a pod may be refused",
    "ResourceQuota": "pods that a quota refuses count as made",
    "Service": "default spreading by services is left out, and which services lose their pods",
    "ReplicationController": "default spreading by replication controllers is left out, and expected pods of budgets",
    "ReplicaSet": "default spreading by replica sets is left out, and expected pods of budgets",
    "StatefulSet": "default spreading by stateful sets is left out, and expected pods of budgets",
    "Deployment": "expected pods of budgets may be wrong, and what a change finds there is unknown",
    "DaemonSet": "pods of daemon sets are known by their owner references only",
    "Job": "pods of jobs are known by their owner references only",
    "CronJob": "those of the change seem to be new",
    "HorizontalPodAutoscaler": "which workloads one scales is unknown, and so is their size",
    "MutatingWebhookConfiguration": "whether one changes pods as they are made is unknown",
    "MutatingAdmissionPolicy": "whether one changes pods as they are made is unknown",
    "ResourceClaim": "whether pods with resource claims have their devices is unknown",
    "ResourceSlice": "which devices nodes have is unknown",
    "ResourceClaimTemplate": "which claims for devices are made for a pod is unknown",
    "DeviceTaintRule": "devices that a rule taints count as free of these taints",
    "DeviceClass": "which devices a claim or an extended resource can be met with is unknown",
    "PodGroup": "which pods Volcano places together, and in which queue they wait, is unknown",
    "Queue": "which share of the cluster Volcano gives to each queue is unknown",
    "NodePool": "what nodes of a pool of Karpenter's are like is unknown",
    "Event": "when the scheduler last tried a pod, and for whom pods were evicted, is unknown",
}


def consequence_without(kind: str) -> str:
    """What can be different from the answer when objects of the kind were not read."""
    return _WITHOUT.get(kind, "what plugins would make of them is unknown")


def why_unread(unread: Unread, verb: str = "list") -> str:
    """Why a kind was not read, as the end of a sentence that begins with it; says which right is missing.

    ``verb`` is what was asked for: ``list``, or ``get`` of single objects.
    """
    if unread.state is KindState.ABSENT:
        return f"are not in the snapshot; kubectl get {unread.resource} -A -o json adds them"
    return "; ".join(filter(None, (_refusal(unread, verb), _missing_right(unread, verb))))


def unreadable(kind: str, unread: Unread) -> Assumption:
    """That objects of the kind were not read. What is lost with events is only told otherwise."""
    told = f"{_refusal(unread)}: {consequence_without(kind)}"
    message = "; ".join(filter(None, (told, _missing_right(unread))))
    # Events tell what was; no scheduler looks at them.
    return Assumption(kind, LIST, message, AssumptionKind.TOLD if kind == "Event" else AssumptionKind.UNREADABLE)


def _refusal(unread: Unread, verb: str = "list") -> str:
    if verb == "get":
        return "may not be read (403)" if unread.status == FORBIDDEN else f"is not served as that ({unread.status})"
    if unread.status >= _SERVER_ERROR:
        return "could not be listed"
    return "may not be listed (403)" if unread.status == FORBIDDEN else f"is not served as v1 ({unread.status})"


def _missing_right(unread: Unread, verb: str = "list") -> str:
    """Empty where it is no matter of rights."""
    return f"the right to {verb} {unread.resource} is missing" if unread.status == FORBIDDEN and unread.resource else ""


# Kinds that most clusters have objects of, or that a pod or an object refers to if they matter.
_DECISIVE = frozenset(
    {
        *("Node", "Pod", "PodDisruptionBudget", "PriorityClass", "RuntimeClass", "Namespace"),
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "ResourceQuota"),
        *("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"),
    }
)


# Their short names read like other words.
_SPELLED_OUT = ("Node", "Pod", "Event")


def absent(kind: str, unread: Unread, consequence: str = "", about: AssumptionKind | None = None) -> Assumption:
    """That the input has no object of the kind, and the two ways to settle whether the cluster has any.

    It fails gates if the kind is decisive, unless ``about`` says otherwise.
    """
    about = about or (AssumptionKind.ABSENT if kind in _DECISIVE else AssumptionKind.NOTE)
    message = f"the snapshot has none: {consequence or consequence_without(kind)}"
    if about is not AssumptionKind.NOTE:
        # The kind as a user of kubectl types it: ``pdb``, or the resource where there is no short name.
        word = unread.resource if kind in _SPELLED_OUT else SHORT_NAMES.get(kind, unread.resource)
        message += (
            f"; add {word} to the dump (kubectl get {word} -A -o json), or --assume-none {word} if the cluster has none"
        )
    return Assumption(kind, LIST, message, about)


def assumed_none(kind: str) -> Assumption:
    """That the user says that the cluster has no object of the kind."""
    return Assumption(kind, LIST, "--assume-none: the cluster is taken to have none", AssumptionKind.NOTE)


def unread_of(cluster: ClusterSnapshot, kinds: Iterable[str]) -> list[Assumption]:
    """An assumption for each of these kinds that was not read."""
    unread = cluster.unread
    return [
        (absent if unread[kind].state is KindState.ABSENT else unreadable)(kind, unread[kind])
        for kind in (kinds if unread else ())
        if kind in unread
    ]


def unreadable_of(cluster: ClusterSnapshot, kinds: Iterable[str]) -> list[Assumption]:
    """The same for kinds whose absence from a dump is no news: it says nothing of those."""
    return unread_of(cluster, [kind for kind in kinds if state_of(cluster, kind) is KindState.UNREADABLE])


def require(cluster: ClusterSnapshot, kind: str) -> None:
    """Raise ``InputError`` if the input has no object of a kind without which no verdict is possible."""
    unread = cluster.unread.get(kind)
    if unread is not None and not getattr(cluster, f"{kind.lower()}s"):
        raise InputError(
            f"the input has no {kind.lower()}s: no verdict is possible",
            hint=f"kubectl get {unread.resource} -A -o json adds them; --assume-none {unread.resource} if it has none",
        )


def missing(cluster: ClusterSnapshot, kind: str, what: str) -> str:
    """That an object of the kind (``what``: ``pod "a"``) is not there, or that its kind was not read."""
    unread = cluster.unread.get(kind)
    if unread is None:
        return f"there is no {what}"
    return f"whether there is a {what.removesuffix(' in the cluster')} is unknown: {kind}s {why_unread(unread)}"


def are_budgets_unread(assumptions: Iterable[Assumption]) -> bool:
    """Whether PodDisruptionBudgets may protect pods though the answer has none."""
    return any(
        each.subject == "PodDisruptionBudget" and each.field == LIST and each.kind is not AssumptionKind.NOTE
        for each in assumptions
    )


def is_absent(assumptions: Iterable[Assumption], kind: str) -> bool:
    """Whether the answer says that the input has no object of the kind."""
    about = (kind, LIST, AssumptionKind.ABSENT)
    return any((each.subject, each.field, each.kind) == about for each in assumptions)


def absent_sentence(assumptions: Iterable[Assumption]) -> str:
    """What the input has none of and could change the answer: kinds, and nodes of pods; empty if there is nothing."""
    found = [each for each in dict.fromkeys(assumptions) if each.kind is AssumptionKind.ABSENT]
    others = [f"{each.message[:1].upper()}{each.message[1:]}." for each in found if each.field != LIST]
    return " ".join([*filter(None, [_absent_kinds([each for each in found if each.field == LIST])]), *others])


def _absent_kinds(kinds: Sequence[Assumption]) -> str:
    if not kinds:
        return ""
    names = [_plural(each.subject) for each in kinds]
    words = list(dict.fromkeys(each.message.rpartition(" --assume-none ")[2].partition(" ")[0] for each in kinds))
    options = " ".join(f"--assume-none {word}" for word in words)
    return (
        f"{' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))} unknown: the snapshot has none; add "
        f"{','.join(words)} to the dump (kubectl get {','.join(words)} -A -o json), or {options}."
    )


def _plural(kind: str) -> str:
    if kind == "PodDisruptionBudget":
        return "PDBs"
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def takes_the_ground(assumption: Assumption) -> bool:
    """Whether an answer that rests on it must let nothing pass.

    That is if a kind that matters, a file or an object was not read, or a feature gate is set of which nothing is
    modeled.
    """
    if assumption.kind in (AssumptionKind.UNREADABLE, AssumptionKind.ABSENT, AssumptionKind.SET_ASIDE):
        return True
    return assumption.field.startswith(FEATURE_GATE) and assumption.message == SETTING_NOT_MODELLED
