"""What is said of a kind of object that could not be read: what its absence may change, and which right is missing.

Who reads a kind asks here, so that no kind counts against an answer that it cannot change.
"""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.unread import FORBIDDEN, Unread
from kpreempt.verdict.records import FEATURE_GATE, SETTING_NOT_MODELLED, Assumption, AssumptionKind

# The field of an assumption about a kind as a whole.
LIST = "list"

_WITHOUT = {
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
    return "may not be listed (403)" if unread.status == FORBIDDEN else f"is not served as v1 ({unread.status})"


def _missing_right(unread: Unread, verb: str = "list") -> str:
    """Empty where it is no matter of rights."""
    return f"the right to {verb} {unread.resource} is missing" if unread.status == FORBIDDEN and unread.resource else ""


def unread_of(cluster: ClusterSnapshot, kinds: Iterable[str]) -> list[Assumption]:
    """An assumption for each of these kinds that the snapshot was taken without."""
    unread = cluster.unread
    return [unreadable(kind, unread[kind]) for kind in kinds if kind in unread] if unread else []


def are_budgets_unread(assumptions: Iterable[Assumption]) -> bool:
    """Whether budgets may protect pods of which nothing says so."""
    return any(each.subject == "PodDisruptionBudget" and each.field == LIST for each in assumptions)


def takes_the_ground(assumption: Assumption) -> bool:
    """Whether an answer that rests on it must let nothing pass.

    That is where a kind that matters could not be read, or a feature gate is set of which nothing is modelled.
    """
    if assumption.kind is AssumptionKind.UNREADABLE:
        return True
    return assumption.field.startswith(FEATURE_GATE) and assumption.message == SETTING_NOT_MODELLED
