"""Kinds that a dump has nothing of though the cluster must have some: what else it has points to them.

A dump does not show what it was asked for. Of most kinds a cluster may have none; where pods mount claims there are
claims, and where a workload has pods there is the workload.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from kpreempt.analysis.check.rollout.deletions import Deletion
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, POD_OWNERS, plural_of
from kpreempt.analysis.check.rollout.records import PlannedWorkload
from kpreempt.analysis.document_reader import Document, mapping_in, mappings_in
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption
from kpreempt.verdict.unread import LIST, consequence_without

_NAMES_SHOWN = 3
_PROVISIONED = "pv.kubernetes.io/provisioned-by"


def lacking_workloads(cluster: ClusterSnapshot, orphans: Sequence[tuple[str, str]]) -> list[Assumption]:
    """Workloads of the change, each by kind and name, of which the input has the pods and not themselves."""
    found = []
    for kind in dict.fromkeys(kind for kind, _ in orphans):
        subjects = [name for each, name in orphans if each == kind]
        has_others = kind in CLUSTER_KINDS and getattr(cluster, CLUSTER_KINDS[kind].field)
        if has_others or kind in cluster.skipped or _is_whole(cluster):
            message = "the input has its pods, and not itself; how it was before is told from them"
            found += [Assumption(f"{kind} {each}", "spec", message) for each in subjects]
        else:
            message = f"pods of {_named(subjects)} are there: what the change does to them is told from the pods alone"
            found.append(_lacking(kind, message, [kind]))
    return found


def lacking_kinds(
    cluster: ClusterSnapshot,
    after: ClusterSnapshot,
    workloads: Iterable[PlannedWorkload],
    pods: Iterable[PodTemplate],
) -> list[Assumption]:
    """Kinds that decide where the change's pods can run; ``after`` is the cluster with the change laid over it."""
    if _is_whole(cluster):
        return []
    owners = {each.change.object: each.after for each in workloads if each.after is not None}
    specs = {name: (_pod_spec(document), mapping_in(document, "spec")) for name, document in owners.items()}
    specs |= {f"Pod {each.namespace}/{each.name}": (mapping_in(each.document, "spec"), {}) for each in pods}
    volumes = [name for name, (pod, owner) in specs.items() if _mounts_claims(pod) or owner.get("volumeClaimTemplates")]
    classes = [name for name, (pod, _) in specs.items() if pod.get("runtimeClassName")]
    # Those that name no PriorityClass get that of the default one, if there is one.
    default = [name for name, (pod, _) in specs.items() if not pod.get("priorityClassName")]
    users = {**dict.fromkeys(_OF_VOLUMES, volumes), "RuntimeClass": classes, "PriorityClass": default}
    kinds = [kind for kind in _there_must_be(cluster, after) if users[kind] and kind not in cluster.unread]
    of_volumes = [kind for kind in kinds if kind in _OF_VOLUMES]
    found = []
    if of_volumes:
        # They come together, and so does what is not known.
        of_pods = f"{consequence_without(of_volumes[0])}, for pods of {_named(volumes)}"
        found.append(_lacking(of_volumes[0], of_pods, of_volumes))
    found += [
        _lacking(kind, f"{consequence_without(kind)}, for pods of {_named(users[kind])}", [kind])
        for kind in ("RuntimeClass", "PriorityClass")
        if kind in kinds
    ]
    return found


def lacking_pruned(cluster: ClusterSnapshot, pruned: Sequence[Deletion]) -> list[Assumption]:
    """Kinds of pruned objects that a dump has none of, if their deletion is damage: whether any is there is unknown."""
    found = []
    for kind in dict.fromkeys(each.kind for each in pruned):
        has_some = (kind in CLUSTER_KINDS and getattr(cluster, CLUSTER_KINDS[kind].field)) or kind in cluster.skipped
        is_known = has_some or (_is_whole(cluster) and kind not in cluster.unread)
        if not is_known and (kind in POD_OWNERS or kind in _LOST_WHEN_PRUNED):
            names = _named([each.described for each in pruned if each.kind == kind])
            resource = ".".join(filter(None, (plural_of(kind), _group(kind))))
            message = (
                f"the snapshot has none: what goes when {names} is pruned is not known; kubectl get {resource} -A -o"
                " json adds them"
            )
            found.append(Assumption(kind, LIST, message))
    return found


_LOST_WHEN_PRUNED = ("Namespace", "PersistentVolumeClaim", "PersistentVolume", "Service")
_OF_VOLUMES = ("PersistentVolumeClaim", "PersistentVolume", "StorageClass")


def _is_whole(cluster: ClusterSnapshot) -> bool:
    """Whether it was read of a server, kind by kind, so that what it does not have is not there."""
    return bool(cluster.listed)


def _there_must_be(cluster: ClusterSnapshot, after: ClusterSnapshot) -> Iterator[str]:
    """The kinds of which the dump has none, and names some."""
    claims, volumes = cluster.persistent_volume_claims, cluster.persistent_volumes
    evidence: Mapping[str, bool] = {
        "PersistentVolumeClaim": not claims
        and any(volume.persistent_volume_claim for pod in cluster.pods for volume in pod.spec.volumes),
        "PersistentVolume": not volumes and any(each.spec.volume_name for each in claims),
        # Volumes that somebody made by hand may name a class that nobody needs.
        "StorageClass": not after.storage_classes
        and any(_PROVISIONED in each.metadata.annotations for each in volumes),
        "RuntimeClass": not cluster.runtime_classes and any(pod.spec.runtime_class_name for pod in cluster.pods),
        "PriorityClass": not after.priority_classes and any(pod.spec.priority_class_name for pod in cluster.pods),
    }
    yield from (kind for kind, is_lacking in evidence.items() if is_lacking)


def _lacking(subject: str, message: str, kinds: Sequence[str]) -> Assumption:
    resources = ",".join(".".join(filter(None, (plural_of(each), _group(each)))) for each in kinds)
    text = (
        f"the cluster's dump has none, and there must be some: {message}; kubectl get {resources} -A -o json adds them"
    )
    return Assumption(subject, LIST, text)


def _group(kind: str) -> str:
    return POD_OWNERS[kind][0] if kind in POD_OWNERS else CLUSTER_KINDS[kind].groups[0]


def _named(names: Sequence[str]) -> str:
    more = len(names) - _NAMES_SHOWN
    return ", ".join([*names[:_NAMES_SHOWN], *([f"{more} more"] if more > 0 else [])])


def _pod_spec(workload: Document) -> Document:
    return mapping_in(mapping_in(mapping_in(workload, "spec"), "template"), "spec")


def _mounts_claims(pod: Document) -> bool:
    return any(isinstance(each.get("persistentVolumeClaim"), dict) for each in mappings_in(pod, "volumes"))
