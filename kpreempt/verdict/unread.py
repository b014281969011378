"""Reports on kinds that were not read: what they could change, and how to read them.

Code that reads a kind calls ``unread_of``, so that a kind only counts against answers it can change. A kind that could
not be read always counts. A kind that is absent from the input only counts if it is decisive: most clusters have no
objects of the other kinds, and these rarely change more than the choice between tied nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kpreempt.errors import InputError
from kpreempt.model.cluster import FORBIDDEN, SHORT_NAMES, ClusterSnapshot, KindState, Unread, state_of
from kpreempt.verdict.records import FEATURE_GATE, SETTING_UNMODELED, Assumption, AssumptionKind

# The field of an assumption about a kind.
LIST = "list"
_SERVER_ERROR = 500
_NONE = "the snapshot has none"
_MISSING = "missing permission: "
_PERMISSION = f"{_MISSING}list "
_EVERYWHERE = " (cluster-wide)"
_ROLE = "deploy/cluster-role.yaml has all permissions that kpreempt uses"
_NOT_LISTED = ("cannot be listed", "could not be listed", "can be listed only")
_ASSUMED_NONE = "--assume-none: assuming that the cluster has none"

_WITHOUT = {
    "Node": "scheduling decisions are unknown",
    "Pod": "free capacity on the nodes is unknown",
    "PodDisruptionBudget": "if budgets protect the victims, another node may be chosen",
    "PriorityClass": "the priority and preemption policy of pods that name a class are unknown, and so are the "
    "defaults for other pods",
    "Namespace": "affinity terms with a namespaceSelector select nothing, and Pod Security labels are ignored",
    "PersistentVolumeClaim": "it is unknown whether the claims of pods exist and are bound",
    "PersistentVolume": "the nodes that can access a bound volume are unknown",
    "StorageClass": "it is unknown when and where claims are bound",
    "CSINode": "the volume limits of nodes are unknown",
    "CSIDriver": "it is unknown whether drivers report storage capacity",
    "CSIStorageCapacity": "the storage capacity for new volumes is unknown",
    "VolumeAttachment": "volumes that are still attached are not counted against node limits",
    "RuntimeClass": "the overhead and node selector of runtime classes are ignored",
    "LimitRange": "default requests of containers are ignored, and pods may be rejected",
    "ResourceQuota": "pods that a quota would reject are assumed to be created",
    "Service": "default spreading by Services is ignored, and Services that lose all their pods are not reported",
    "ReplicationController": "default spreading by ReplicationControllers is ignored, and the expected pod counts of "
    "budgets may be wrong",
    "ReplicaSet": "default spreading by ReplicaSets is ignored, and the expected pod counts of budgets may be wrong",
    "StatefulSet": "default spreading by StatefulSets is ignored, and the expected pod counts of budgets may be wrong",
    "Deployment": "the expected pod counts of budgets may be wrong, and the previous state of changed objects is "
    "unknown",
    "DaemonSet": "DaemonSet pods are identified only by their owner references",
    "Job": "Job pods are identified only by their owner references",
    "CronJob": "CronJobs in the change are assumed to be new",
    "HorizontalPodAutoscaler": "autoscaled workloads and their sizes are unknown",
    "MutatingWebhookConfiguration": "it is unknown whether pods are mutated when they are created",
    "MutatingAdmissionPolicy": "it is unknown whether pods are mutated when they are created",
    "ValidatingWebhookConfiguration": "it is unknown whether webhooks reject objects of the change",
    "ValidatingAdmissionPolicy": "it is unknown whether policies reject objects of the change",
    "ValidatingAdmissionPolicyBinding": "it is unknown which policies apply to objects of the change",
    "ServiceAccount": "the service accounts of pods are assumed to exist",
    "ResourceClaim": "it is unknown whether devices are allocated to pods with resource claims",
    "ResourceSlice": "the devices of nodes are unknown",
    "ResourceClaimTemplate": "the resource claims created for pods are unknown",
    "DeviceTaintRule": "devices are assumed to have no taints from rules",
    "DeviceClass": "the devices that match claims or extended resources are unknown",
    "PodGroup": "the gangs and queues of pods in Volcano are unknown",
    "Queue": "the shares of Volcano's queues are unknown",
    "NodePool": "the properties of Karpenter's new nodes are unknown",
    "Event": "the last scheduling attempts, and the preemptors of evicted pods, are unknown",
}


def consequence_without(kind: str) -> str:
    """What could differ from the answer because objects of the kind were not read."""
    return _WITHOUT.get(kind, "their effect on plugins is unknown")


def why_unread(unread: Unread, verb: str = "list") -> str:
    """Why a kind was not read, as the end of a sentence that starts with the kind, with the missing permission if any.

    ``verb`` is the attempted request: ``list``, or ``get`` of single objects.
    """
    if unread.state is KindState.ABSENT:
        return f"are not in the snapshot; add them with kubectl get {unread.resource} -A -o json"
    return "; ".join(filter(None, (_error(unread, verb), _missing_permission(unread, verb))))


def unreadable(kind: str, unread: Unread) -> Assumption:
    """The assumption that objects of the kind were not read; missing events only change what is reported."""
    text = f"{_error(unread)}: {consequence_without(kind)}"
    message = "; ".join(filter(None, (text, _missing_permission(unread))))
    # Events are history; no scheduler reads them.
    return Assumption(
        kind, LIST, message, AssumptionKind.INFORMATIONAL if kind == "Event" else AssumptionKind.UNREADABLE
    )


def _error(unread: Unread, verb: str = "list") -> str:
    if verb == "get":
        return "cannot be read (403)" if unread.status == FORBIDDEN else f"is not served as v1 ({unread.status})"
    if unread.namespace:
        return f"can be listed only in namespace {unread.namespace} (403 for the others)"
    if unread.status >= _SERVER_ERROR:
        return "could not be listed"
    return "cannot be listed (403)" if unread.status == FORBIDDEN else f"is not served as v1 ({unread.status})"


def _missing_permission(unread: Unread, verb: str = "list") -> str:
    """The missing permission, or an empty text if the error is another one."""
    if unread.status != FORBIDDEN or not unread.resource:
        return ""
    return f"{_PERMISSION}{unread.resource}{_EVERYWHERE}" if verb == "list" else f"{_MISSING}{verb} {unread.resource}"


# Kinds that exist in most clusters, or that a pod or another object refers to if they matter.
_DECISIVE = frozenset(
    {
        *("Node", "Pod", "PodDisruptionBudget", "PriorityClass", "RuntimeClass", "Namespace"),
        *("PersistentVolumeClaim", "PersistentVolume", "StorageClass", "ResourceQuota"),
        *("ResourceClaim", "ResourceClaimTemplate", "ResourceSlice", "DeviceClass"),
    }
)


_LACKING = (AssumptionKind.ABSENT, AssumptionKind.UNREADABLE)
# Kinds whose short names look like other words.
_SPELLED_OUT = ("Node", "Pod", "Event")


def absent(kind: str, unread: Unread, consequence: str = "", about: AssumptionKind | None = None) -> Assumption:
    """The assumption that the cluster has no object of the kind, with the two ways to resolve it.

    It fails gates if the kind is decisive, unless ``about`` overrides that.
    """
    about = about or (AssumptionKind.ABSENT if kind in _DECISIVE else AssumptionKind.NOTE)
    message = f"{_NONE}: {consequence or consequence_without(kind)}"
    if about is not AssumptionKind.NOTE:
        # The kind as typed in kubectl: ``pdb``, or the resource if there is no short name.
        word = unread.resource if kind in _SPELLED_OUT else SHORT_NAMES.get(kind, unread.resource)
        message += f"; add them (kubectl get {word} -A -o json), or pass --assume-none {word} if the cluster has none"
    return Assumption(kind, LIST, message, about)


def assumed_none(kind: str) -> Assumption:
    """The note that the user declared that the cluster has no object of the kind."""
    return Assumption(kind, LIST, _ASSUMED_NONE, AssumptionKind.NOTE)


def unread_of(cluster: ClusterSnapshot, kinds: Iterable[str]) -> list[Assumption]:
    """An assumption for each of these kinds that was not read."""
    unread = cluster.unread
    return [
        (absent if unread[kind].state is KindState.ABSENT else unreadable)(kind, unread[kind])
        for kind in (kinds if unread else ())
        if kind in unread
    ]


def unreadable_of(cluster: ClusterSnapshot, kinds: Iterable[str]) -> list[Assumption]:
    """The same, but only for kinds that could not be read; absent kinds are not reported."""
    return unread_of(cluster, [kind for kind in kinds if state_of(cluster, kind) is KindState.UNREADABLE])


def require(cluster: ClusterSnapshot, kind: str, what: str = "verdict") -> None:
    """Raise ``InputError`` if the input has no object of a kind that every verdict requires.

    It is also raised if nodes could not be read, or not all pods. ``what`` is not possible then.
    """
    unreadable = unreadable_of(cluster, ("Node", "Pod"))
    if unreadable:
        why = " and ".join(assumption_text(each).partition(":")[0] for each in unreadable)
        raise InputError(f"no {what} is possible: {why}. {missing_permissions(unreadable)}", hint=_ROLE)
    unread = cluster.unread.get(kind)
    if unread is not None and not getattr(cluster, f"{kind.lower()}s"):
        raise InputError(
            f"the input has no {kind.lower()}s, so no {what} is possible",
            hint=f"add them with kubectl get {unread.resource} -A -o json, or pass --assume-none {unread.resource}"
            " if there are none",
        )


def missing(cluster: ClusterSnapshot, kind: str, what: str) -> str:
    """A text saying that an object (``what``: ``pod "a"``) does not exist, or that its kind was not read."""
    unread = cluster.unread.get(kind)
    if unread is None:
        return f"{what} not found"
    return f"it is unknown whether {what} exists: {kind}s {why_unread(unread)}"


def are_budgets_unread(assumptions: Iterable[Assumption]) -> bool:
    """Whether PodDisruptionBudgets may protect pods although the answer has none."""
    return any(
        each.subject == "PodDisruptionBudget" and each.field == LIST and each.kind is not AssumptionKind.NOTE
        for each in assumptions
    )


def is_absent(assumptions: Iterable[Assumption], kind: str) -> bool:
    """Whether the answer reports that the input has no object of the kind."""
    about = (kind, LIST, AssumptionKind.ABSENT)
    return any((each.subject, each.field, each.kind) == about for each in assumptions)


def assumption_text(assumption: Assumption) -> str:
    """The assumption as a sentence without a period: ``No PDBs in the snapshot: ...``."""
    # A comparison puts the algorithm before the subject.
    prefix, separator, subject = assumption.subject.rpartition(": ")
    message = assumption.message
    if assumption.field == LIST and message.startswith(_NONE):
        text = f"No {plural_of(subject)} in the snapshot{message.removeprefix(_NONE)}"
    elif assumption.field == LIST and message.startswith(_NOT_LISTED):
        text = f"{plural_of(subject)} {message}"
    elif assumption.field == LIST and message == _ASSUMED_NONE:
        text = f"assuming that the cluster has no {plural_of(subject)} (--assume-none)"
    elif assumption.kind is AssumptionKind.WHAT_IF:
        # The message says which field it is.
        text = f"{subject}: {message}"
    elif assumption.field.startswith(FEATURE_GATE) and assumption.field in message:
        text = message
    else:
        about = " ".join(filter(None, (subject, assumption.field)))
        colon = "" if message.startswith(("unknown; ", "known only ")) or not about else ":"
        text = " ".join(filter(None, (f"{about}{colon}", message)))
    return f"{prefix}{separator}{text}"


def permission_first(assumption: Assumption) -> str:
    """The same sentence, beginning with the missing permission, if any: its end may be cut off."""
    text, found, permission = assumption_text(assumption).partition(f"; {_MISSING}")
    return f"{_MISSING}{permission}; {text}" if found else text


def absent_sentence(assumptions: Iterable[Assumption]) -> str:
    """Sentences on kinds, nodes of pods and permissions that are missing and could change the answer; or empty."""
    assumptions = list(dict.fromkeys(assumptions))
    found = [each for each in assumptions if each.kind is AssumptionKind.ABSENT]
    others = [f"{each.message[:1].upper()}{each.message[1:]}." for each in found if each.field != LIST]
    kinds = _absent_kinds([each for each in found if each.field == LIST])
    return " ".join(filter(None, [kinds, *others, missing_permissions(assumptions)]))


def missing_permissions(assumptions: Iterable[Assumption]) -> str:
    """A sentence with every permission that the answer lacks, or empty."""
    unreadable = (each for each in assumptions if each.kind is AssumptionKind.UNREADABLE and each.field == LIST)
    parts = (each.message.partition(_PERMISSION) for each in unreadable)
    resources = dict.fromkeys(after.removesuffix(_EVERYWHERE) for _, found, after in parts if found)
    # The most important ones first.
    ordered = sorted(resources, key=lambda each: (each != "nodes", each != "pods", each))
    return f"Missing permission: list {', '.join(ordered)}{_EVERYWHERE}." if ordered else ""


def lacks(assumptions: Iterable[Assumption], kind: str) -> bool:
    """Whether the answer reports that the input lacks some objects of the kind, or all."""
    return any(each.subject == kind and each.kind in _LACKING for each in assumptions)


def lacks_nodes(assumptions: Iterable[Assumption]) -> bool:
    """Whether the answer reports that the input lacks some nodes, or all."""
    return lacks(assumptions, "Node")


def why_no_nodes(assumptions: Iterable[Assumption]) -> str:
    """``nodes cannot be listed (403)``, or an empty text if they were read, or are only missing in the input."""
    unreadable = (each for each in assumptions if each.kind is AssumptionKind.UNREADABLE)
    found = next((each for each in unreadable if (each.subject, each.field) == ("Node", LIST)), None)
    return assumption_text(found).partition(":")[0] if found is not None else ""


def lacks_pods(assumptions: Iterable[Assumption]) -> bool:
    """Whether the answer reports that not all pods could be read."""
    return any(each.subject == "Pod" and each.kind in _LACKING and not is_absent([each], "Pod") for each in assumptions)


def _absent_kinds(kinds: Sequence[Assumption]) -> str:
    if not kinds:
        return ""
    names = [plural_of(each.subject) for each in kinds]
    words = list(dict.fromkeys(each.message.rpartition(" --assume-none ")[2].partition(" ")[0] for each in kinds))
    options = " ".join(f"--assume-none {word}" for word in words)
    subject = " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    return (
        f"The snapshot has no {subject}: add them (kubectl get {','.join(words)} -A -o json), or pass {options} if"
        f" the cluster has none."
    )


def plural_of(kind: str) -> str:
    """The objects of a kind: ``Services``, ``PDBs``, ``pods``."""
    if kind in _SPELLED_OUT:
        return f"{kind.lower()}s"
    if kind == "PodDisruptionBudget":
        return "PDBs"
    if kind.endswith("y"):
        return f"{kind[:-1]}ies"
    return f"{kind}es" if kind.endswith("s") else f"{kind}s"


def invalidates_answer(assumption: Assumption) -> bool:
    """Whether an answer with this assumption must not let anything pass.

    That is the case if a relevant kind, a file or an object was not read, or if a feature gate is set that has no
    modeled effect.
    """
    if assumption.kind in (AssumptionKind.UNREADABLE, AssumptionKind.ABSENT, AssumptionKind.SKIPPED):
        return True
    return assumption.field.startswith(FEATURE_GATE) and assumption.message == SETTING_UNMODELED
