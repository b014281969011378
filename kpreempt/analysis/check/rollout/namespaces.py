"""Whether the namespaces are there that a change puts its objects into, at the moment at which each is applied.

``kubectl apply`` takes objects in the order of the input (``k8s.io/kubectl`` v0.36.3 ``pkg/cmd/apply/apply.go``), goes
on after one that is refused, and makes no namespace by itself; Helm, Kustomize and Argo CD put namespaces first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set

from kpreempt.analysis.check.naming import some_of
from kpreempt.analysis.check.rollout.cluster_documents import LiveDocuments
from kpreempt.analysis.check.rollout.hooks import Applier, is_left_out
from kpreempt.analysis.check.rollout.kinds import CLUSTER_KINDS, cluster_kind_of, group_of, is_namespaced, is_pod_owner
from kpreempt.analysis.check.rollout.records import ManifestDocument, MissingNamespaces
from kpreempt.analysis.document_reader import Document, describe, mapping_in
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import LIST, unreadable_of

KIND = "Namespace"
# The API server makes them itself.
_ALWAYS_THERE = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})
# Groups of which it is known whether a kind has a namespace.
_OWN_GROUPS = frozenset(
    {
        *("", "apps", "autoscaling", "batch", "coordination.k8s.io", "discovery.k8s.io", "extensions"),
        *("networking.k8s.io", "policy", "rbac.authorization.k8s.io"),
    }
)


def missing_namespaces(
    documents: Sequence[ManifestDocument],
    namespace: str,
    cluster: ClusterSnapshot,
    live: LiveDocuments,
    applier: Applier,
) -> MissingNamespaces:
    """What a change lacks; objects that say no namespace are in ``namespace``.

    kubectl applies them in the order of the input, the other tools apply namespaces first.
    """
    made: dict[str, int] = {}
    for index, each in enumerate(documents):
        if each.document["kind"] == KIND and not group_of(each.document):
            made.setdefault(str(mapping_in(each.document, "metadata").get("name")), index)
    absent: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    there = _ALWAYS_THERE | {each.metadata.name for each in cluster.namespaces}
    for index, given in enumerate(documents):
        where = _namespace_of(given.document, namespace)
        if not where or where in there or is_left_out(given.document, applier):
            continue
        metadata = {**mapping_in(given.document, "metadata"), "namespace": where}
        name = describe({**given.document, "metadata": metadata})
        if where not in made:
            absent.setdefault(where, []).append(name)
        elif applier is Applier.KUBECTL and index < made[where]:
            late.setdefault(where, []).append(name)
    if absent or late:
        in_use = _in_use(cluster, {*absent, *late}) | live.namespaces
        absent = {where: own for where, own in absent.items() if where not in in_use}
        late = {where: own for where, own in late.items() if where not in in_use}
    if cluster.namespaces or not (absent or late):
        return MissingNamespaces(absent, late)
    if assumed := unreadable_of(cluster, [KIND]):
        return MissingNamespaces(assumptions=assumed)
    # Every cluster has some.
    message = f"the snapshot has none: {some_of([*absent, *late])} assumed to be there"
    return MissingNamespaces(assumptions=[Assumption(KIND, LIST, message, AssumptionKind.TOLD)])


def _namespace_of(document: Document, namespace: str) -> str:
    """The namespace that an object is put into; empty for one that has none, or of which that is not known."""
    if not is_namespaced(document):
        return ""
    own = mapping_in(document, "metadata").get("namespace")
    if isinstance(own, str) and own:
        return own
    is_known = is_pod_owner(document) or cluster_kind_of(document) is not None or group_of(document) in _OWN_GROUPS
    return namespace if is_known else ""


def _in_use(cluster: ClusterSnapshot, names: Set[str]) -> set[str]:
    """Those of the namespaces that the cluster has objects in, so that they are there."""

    def used() -> Iterator[str]:
        for kind in CLUSTER_KINDS.values():
            if kind.is_namespaced:
                yield from (record.metadata.namespace for record in getattr(cluster, kind.field))

    return set(names) & set(used())
