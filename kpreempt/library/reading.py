"""Reading the cluster that a request is about: merged snapshots or a live one, completed like an API server would."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, BinaryIO

import msgspec

from kpreempt.admission import complete_cluster
from kpreempt.analysis.naming import some_of
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot, KindState, only_namespace, state_of
from kpreempt.model.event import counted_nodes
from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields
from kpreempt.model.meta import ObjectName
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.snapshot.archives import InputLimits, SkippedInput
from kpreempt.snapshot.collect import NOTHING_MORE, Needs
from kpreempt.snapshot.load import Loaded, load_snapshot, merge_clusters
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import assumed_none

if TYPE_CHECKING:
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.lists import LiveSnapshot, ObjectNames


_FILES_SHOWN = 3
# The system runs pods in these namespaces of each cluster: ``kube-system``, or OpenShift's.
_SYSTEM_NAMESPACES = ("kube-", "openshift-")


class LoadedCluster(msgspec.Struct, frozen=True):
    """A cluster and the assumptions about it; ``documents`` are the requested plain objects.

    ``extra_fields`` is what was read for plugins.
    """

    cluster: ClusterSnapshot
    assumptions: list[Assumption]
    documents: list[dict[str, Any]] = []
    extra_fields: ExtraFields = NO_EXTRAS


class Listener:
    """Receives the progress of reading a source, its messages and hints, and its end.

    This one ignores them: everything that matters to an answer is among its assumptions.
    """

    def __call__(self, what: str, share: float, /) -> None:
        """Report that a share (0 to 1, or negative if unknown) of ``what`` has been read."""

    def report(self, message: str, hint: str = "") -> None:
        """Report a message to the user."""

    def close(self) -> None:
        """Report that nothing more is read from this source."""


class Source(msgspec.Struct, frozen=True, kw_only=True):
    """The source of a cluster and how to read it: from ``paths`` or a ``live`` one, with ``additions`` on top.

    ``at`` is the time in recordings among the paths. The kinds of ``assume_none`` count as read, so the cluster has
    none of them unless there are objects. ``stdin`` provides the content of ``-``. ``listener`` creates the listener
    for each source that is read. ``input_limits`` limits the decompressed size. If it ``completes``, the cluster is
    completed as an API server and its controllers would (``complete_cluster``).
    """

    paths: Sequence[str] = ()
    additions: Sequence[str] = ()
    live: Connection | None = None
    at: str | None = None
    skip_bad_objects: bool = False
    assume_none: frozenset[str] = frozenset()
    input_limits: InputLimits | None = None
    phases: Phases = NO_PHASES
    listener: Callable[[], Listener] = Listener
    stdin: Callable[[], BinaryIO] | None = None
    completes: bool = True


def read_cluster(source: Source, needs: Needs = NOTHING_MORE) -> LoadedCluster:
    """Read and merge the source. Raises ``InputError``, ``UsageError`` and ``ClusterError``."""
    loaded: Loaded | LiveSnapshot
    input_limits = source.input_limits or InputLimits()
    if source.live is None:
        loaded = _load(source, input_limits, source.paths, needs, source.at)
    else:
        if source.at is not None:
            raise UsageError(
                "--at needs a recording, not a live cluster", hint="--snapshot DIR, of kpreempt record --to DIR"
            )
        loaded = _read(source, source.live, needs)
    cluster, skipped_objects, assumptions = loaded.cluster, loaded.skipped_objects, loaded.assumptions
    documents = loaded.documents
    created: set[str] = set()
    if source.additions:
        added = _load(source, input_limits, source.additions, needs)
        documents = [*documents, *added.documents]
        cluster = merge_clusters(cluster, added.cluster)
        created = {pod.key for pod in added.cluster.pods}
        skipped_objects, assumptions = [*skipped_objects, *added.skipped_objects], [*assumptions, *added.assumptions]
    completed: list[Assumption] = []
    if source.completes:
        with source.phases.phase("admission"):
            cluster, completed = complete_cluster(cluster, created=created)
    skipped = input_limits.take_skipped()
    skipped_objects = [*skipped_objects, *skipped.bad]
    listed = files_listed(skipped)
    listener = source.listener()
    for each in skipped_objects:
        listener.report(f"skipped: {each.message}", each.hint)
    for note in listed:
        listener.report(f"{note.subject}: {note.message}")
    listener.close()
    if not source.live and (lacking := missing_nodes(cluster)):
        assumptions = [*assumptions, *lacking]
        cluster = msgspec.structs.replace(cluster, lacks_nodes=True)
    if not source.live and "Pod" not in source.assume_none and (lacking := missing_pods(cluster)):
        assumptions = [*assumptions, *lacking]
        is_evident = any(each.kind is AssumptionKind.ABSENT for each in lacking)
        cluster = msgspec.structs.replace(cluster, lacks_pods=is_evident)
    bad = [
        Assumption(
            each.object_name or each.source,
            each.path,
            f"skipped: invalid: {each.problem}",
            AssumptionKind.SKIPPED,
        )
        for each in skipped_objects
    ]
    loaded_cluster = LoadedCluster(cluster, [*assumptions, *bad, *completed, *listed], documents, needs.extra_fields)
    return assuming_none(loaded_cluster, source.assume_none)


def assuming_none(loaded: LoadedCluster, kinds: Collection[str]) -> LoadedCluster:
    """Return the cluster as if it had been read to have none of these ``kinds``, with a note in the answer.

    A kind that was read stays as it is.
    """
    cluster = loaded.cluster
    assumed = [kind for kind in sorted(kinds) if state_of(cluster, kind) is not KindState.READ]
    if not assumed:
        return loaded
    cluster = msgspec.structs.replace(
        cluster,
        unread={kind: unread for kind, unread in cluster.unread.items() if kind not in assumed},
        listed=(*cluster.listed, *assumed),
    )
    notes = map(assumed_none, assumed)
    return msgspec.structs.replace(loaded, cluster=cluster, assumptions=[*loaded.assumptions, *notes])


def missing_nodes(cluster: ClusterSnapshot) -> list[Assumption]:
    """Report that nodes are not in the input, unless the input claims to have all nodes, or has none.

    That is so if pods are on other nodes, or if the scheduler, which updates a pod's condition with each attempt,
    counted more nodes.
    """
    there = {node.name for node in cluster.nodes}
    if not there or "Node" in cluster.listed:
        return []
    add = "add all nodes to the dump (kubectl get nodes -o json)"
    lacking = [
        pod for pod in cluster.pods if pod.spec.node_name and not pod.is_terminal and pod.spec.node_name not in there
    ]
    if lacking:
        nodes = sorted({pod.spec.node_name for pod in lacking})
        run = "1 pod runs on" if len(lacking) == 1 else f"{len(lacking):,} pods run on"
        on = "a node that is" if len(nodes) == 1 else f"{len(nodes):,} nodes that are"
        pods = some_of([pod.key for pod in lacking])
        message = f"{run} {on} not in the input ({some_of(nodes)}): {pods}; {add}"
        return [Assumption("Node", "", message, AssumptionKind.ABSENT)]
    messages = ((each.message, pod) for pod in cluster.pods if not pod.spec.node_name for each in pod.status.conditions)
    counts = ((counted_nodes(message), pod.key) for message, pod in messages if message)
    number, key = max(counts, default=(0, ""))
    if number <= len(there):
        return []
    message = f"the condition of {key} counts {number:,} nodes, but the input has {len(there):,}; {add}"
    return [Assumption("Node", "", message, AssumptionKind.ABSENT)]


def missing_pods(cluster: ClusterSnapshot) -> list[Assumption]:
    """Report that pods of other namespaces are not in the input, unless the input claims to have all pods, or has none.

    That is so if controllers report pods in a namespace of which it has none, or if it has none of the system, although
    kubelets run its nodes: these report images of other pods. Without such images, it is only assumed to be complete.
    """
    there = {pod.metadata.namespace for pod in cluster.pods}
    if not there or not cluster.nodes or "Pod" in cluster.listed:
        return []
    add = "add the pods of all namespaces to the dump (kubectl get pods -A -o json)"
    reported = [
        *(("ReplicaSet", each.metadata, each.status.replicas) for each in cluster.replica_sets),
        *(("StatefulSet", each.metadata, each.status.replicas) for each in cluster.stateful_sets),
        *(
            ("PodDisruptionBudget", each.metadata, each.status.expected_pods)
            for each in cluster.pod_disruption_budgets
            if each.status is not None
        ),
    ]
    others = [each for each in reported if each[2] and each[1].namespace not in there]
    if others:
        kind, meta, number = min(others, key=lambda each: (each[1].namespace, each[0], each[1].name))
        namespaces = sorted({meta.namespace for _, meta, _ in others})
        of = "namespace" if len(namespaces) == 1 else f"{len(namespaces):,} namespaces:"
        message = (
            f"no pod of {of} {some_of(namespaces)} is in the input, but {ObjectName.of(kind, meta)} counts {number:,}"
        )
        return [Assumption("Pod", "", f"{message}; {add}", AssumptionKind.ABSENT)]
    images = {
        container.image for pod in cluster.pods for container in (*pod.spec.containers, *pod.spec.init_containers)
    }
    # Manifests that were written by hand have no resource version.
    nodes = [node for node in cluster.nodes if node.metadata.resource_version]
    if not nodes or any(namespace.startswith(_SYSTEM_NAMESPACES) for namespace in there):
        return []
    of = f"namespace {min(there)}" if len(there) == 1 else f"{len(there):,} namespaces"
    message = f"the input has only pods of {of}"
    stored = ((node.name, each.names) for node in nodes for each in node.status.images if each.names)
    foreign = next(((name, names[-1]) for name, names in stored if images.isdisjoint(names)), None)
    if foreign is None:
        message = f"{message}: assuming that no others run on its nodes"
        return [Assumption("Pod", "", message, AssumptionKind.INFORMATIONAL)]
    message = f"{message}, but node {foreign[0]} also has images of others ({foreign[1]})"
    message += f"; {add}, or pass --assume-none pods if there are no others"
    return [Assumption("Pod", "", message, AssumptionKind.ABSENT)]


def files_listed(skipped: SkippedInput) -> list[Assumption]:
    """Report kustomizations, which are not built, files without objects, and files that were not read."""
    built = "a kustomization; it is not built, and the files next to it are read as they are (use -k DIR to build it)"
    lists = (
        (skipped.files, "without Kubernetes objects", ""),
        (skipped.not_read, "not read", " (neither .yaml, .yml nor .json)"),
    )
    return [
        *(Assumption(name, "", built) for name in skipped.kustomizations[:_FILES_SHOWN]),
        *(_listed(*each) for each in lists if each[0]),
    ]


def _listed(names: Sequence[str], what: str, why: str) -> Assumption:
    more = len(names) - _FILES_SHOWN
    shown = [*names[:_FILES_SHOWN], *([f"{more:,} more"] if more > 0 else [])]
    subject = f"{len(names):,} {'files' if len(names) > 1 else 'file'} {what}"
    return Assumption(subject, "", f"{', '.join(shown)}{why}", AssumptionKind.NO_OBJECTS)


def with_objects(
    loaded: LoadedCluster, live: Connection | None, names: Sequence[ObjectNames], api_versions: Sequence[str] = ()
) -> LoadedCluster:
    """Return the loaded cluster with the named objects of a ``live`` cluster, whose kinds no snapshot has.

    The document with the types of ``api_versions`` is added, if the server publishes any. Raises ``ClusterError`` and
    ``InputError``.
    """
    if live is None or not (names or api_versions):
        return loaded
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.lists import read_objects

    api = Api(live)
    try:
        found = read_objects(api, names)
        types = _types(api, api_versions)
    finally:
        api.close()
    cluster = msgspec.structs.replace(
        loaded.cluster,
        listed=(*loaded.cluster.listed, *found.known),
        unread={**loaded.cluster.unread, **found.unread},
    )
    return msgspec.structs.replace(loaded, cluster=cluster, documents=[*loaded.documents, *found.documents, *types])


def with_autoscalers(cluster: ClusterSnapshot, live: Connection) -> ClusterSnapshot:
    """Return the cluster with what node autoscalers report in the ``live`` one.

    What cannot be read, for whatever reason, is ``unread``: the answer does not depend on it.
    """
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.lists import read_autoscalers

    api = Api(live)
    try:
        found = read_autoscalers(api, only_namespace(cluster))
    finally:
        api.close()
    merged = merge_clusters(cluster, found)
    return msgspec.structs.replace(merged, unread={**cluster.unread, **found.unread})


def published_types(live: Connection | None, api_versions: Sequence[str]) -> list[dict[str, Any]]:
    """Return the document with the types that a ``live`` cluster publishes for some versions, if any."""
    if live is None or not api_versions:
        return []
    from kpreempt.snapshot.live.api import Api

    api = Api(live)
    try:
        return _types(api, api_versions)
    finally:
        api.close()


def _types(api: Api, api_versions: Sequence[str]) -> list[dict[str, Any]]:
    from kpreempt.admission.published_types import as_document, published
    from kpreempt.snapshot.live.schemas import openapi_documents

    documents = openapi_documents(api, api_versions)
    return [as_document(published(documents.values()))] if documents else []


def _load(
    source: Source, input_limits: InputLimits, paths: Sequence[str], needs: Needs, at: str | None = None
) -> Loaded:
    if "-" in paths and source.stdin is None:
        raise UsageError("standard input is not supported here: expected a path")
    listener = source.listener()
    try:
        loaded = load_snapshot(
            paths,
            stdin=source.stdin() if source.stdin is not None and "-" in paths else None,
            skip_bad_objects=source.skip_bad_objects,
            progress=listener,
            phases=source.phases,
            needs=needs,
            input_limits=input_limits,
            at=at,
        )
    finally:
        listener.close()
    reader = sys.modules.get("kpreempt.snapshot.yaml_fast")
    if reader is not None and not reader.IS_INSTALLED:
        listener.report("rapidyaml is not installed; reading YAML with PyYAML, which is slower")
    return loaded


def _read(source: Source, live: Connection, needs: Needs) -> LiveSnapshot:
    from kpreempt.snapshot.live.api import Api
    from kpreempt.snapshot.live.lists import read_cluster as read_live

    listener, api = source.listener(), Api(live)
    taken_at = datetime.now(UTC).replace(microsecond=0)
    try:
        return read_live(
            api,
            taken_at=taken_at,
            skip_bad_objects=source.skip_bad_objects,
            progress=listener,
            phases=source.phases,
            needs=needs,
        )
    finally:
        listener.close()
        api.close()
