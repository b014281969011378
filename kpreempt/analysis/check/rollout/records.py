"""The objects of a change: as the input has them, made ready, and planned.

Ready they are bounded, in a namespace, and each there once. The plan says what the change does to the cluster's
objects, before any controller or scheduler has acted on it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.hooks import Applier, Order, hook_of, is_omitted
from kpreempt.analysis.check.rollout.kinds import group_of, is_known, is_namespaced
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe, mapping_in
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.workload_pods import PodTemplate, joined
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change


class ManifestDocument(msgspec.Struct, frozen=True):
    """An object of the input as plain data, and where it is written.

    ``origin`` is the file that a ``# Source:`` comment names, as Helm writes it into a stream; else it is empty.
    ``text`` is that of its whole source, empty if it isn't at hand.
    """

    document: Document
    source: str = ""
    line: int = 0
    origin: str = ""
    text: bytes = b""


class PlannedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that the change makes, changes or deletes.

    ``kind``, ``namespace`` and ``name`` are those of the object that has the pods: of a CronJob the Job that it makes.
    ``before`` is how the cluster has it, and ``None`` where it is new; ``after`` is how it will be, with the API's
    defaults, and ``None`` where it is deleted. Of a workload of which the snapshot does not say all, ``before`` says
    less, too: then ``is_same_template`` is false. ``replica_sets`` are those that a Deployment owns in the cluster.
    """

    change: Change
    kind: str
    namespace: str
    name: str
    before: Document | None = None
    after: Document | None = None
    is_same_template: bool = False
    replica_sets: list[Document] = []

    @property
    def key(self) -> str:
        """``namespace/name``."""
        return f"{self.namespace}/{self.name}"


class MissingNamespaces(msgspec.Struct, frozen=True):
    """The objects that have no namespace when they are applied, by its name: ``absent`` there is none at all.

    ``late`` ones are made by the change, after these objects. ``assumptions`` are of a cluster that does not show it.
    """

    absent: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    assumptions: list[Assumption] = []

    @property
    def objects(self) -> list[str]:
        """All that is not applied."""
        return [name for own in (*self.absent.values(), *self.late.values()) for name in own]

    @property
    def detail(self) -> str:
        """What is wrong, and what is not applied for it."""
        return "; ".join(
            f"{words}; not applied: {some_of(own)}"
            for found, words in (
                (self.absent, "neither in the cluster nor in the change"),
                (self.late, "the change makes it only after what is in it"),
            )
            if (own := [name for names in found.values() for name in names])
        )


class Reset(msgspec.Struct, frozen=True):
    """A manifest that sets the size of a workload back to what it says, from the one that its autoscaler has set."""

    workload: str
    autoscaler: str
    current: int
    written: int


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """What a controller adopts: ``objects`` without one (``Pod shop/one``) that the selector of ``owner`` matches.

    ``change`` is the object of the change that makes it so. ``surplus`` is how many of them the controller has too
    many, and deletes; ``None`` if its simulation shows that.
    """

    owner: str
    objects: list[str]
    change: str
    surplus: int | None = None


class Safeguards(msgspec.Struct, frozen=True, kw_only=True):
    """What else a change does to the protection of pods, beyond what the cluster before and after shows.

    ``minimum_sizes`` are the fewest replicas that HorizontalPodAutoscalers leave workloads, by kind, namespace and
    name, before and after the change. ``released`` are objects whose manifests leave out the controller that the
    cluster has for them, with that controller. ``cron_jobs`` have the pod specs of CronJobs before and after.
    ``workloads`` are the cluster's documents of workloads, if the change is about PriorityClasses.
    """

    minimum_sizes: tuple[Mapping[tuple[str, str, str], int], Mapping[tuple[str, str, str], int]] = ({}, {})
    released: Mapping[str, str] = {}
    cron_jobs: Mapping[str, tuple[Document, Document]] = {}
    workloads: list[Document] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does.

    ``changes`` are all objects in the order of the input, also those that stay as they are, and then the deletions.
    ``workloads`` are those of them that have pods and do not stay as they are. ``pods`` are plain pods, not admitted
    yet; ``deleted_pods`` are the ``namespace/name`` of plain pods that go, of which some come again in ``pods``.
    ``deleted_nodes`` go with the pods on them.
    ``cluster`` has all other objects of the change laid over it. ``notes`` tell what of the input is passed over.
    ``order`` says what comes when. Objects that have no namespace are simulated all the same. Pods of Jobs run for
    ``job_seconds`` where nothing else is said of them, which are guessed where that is ``None``, and
    never end where it is 0.
    ``resets`` are the sizes that the apply takes away from autoscalers. ``autoscalers`` are those that are new or
    changed, each with the workload of the change that it scales, if their most replicas are not what is simulated.
    ``rejections`` are the objects that the API server rejects, with the reason; they are not simulated.
    ``only_in_base`` are the objects that the manifests lack and the base has, and that stay in the cluster since
    nothing prunes them. ``adoptions`` are of pods and ReplicaSets that no controller owns. ``node_names`` are the nodes
    that pods newly name in their spec, by the object of the change. ``duplicates`` says of objects that are written
    more than once what the documents that do not count do before.
    """

    changes: list[Change]
    workloads: list[PlannedWorkload]
    pods: list[PodTemplate]
    deleted_pods: list[str]
    deleted_nodes: list[str] = []
    cluster: ClusterSnapshot
    assumptions: list[Assumption] = []
    notes: list[str] = []
    order: Order = Order()
    missing_namespaces: MissingNamespaces = MissingNamespaces()
    job_seconds: int | None = None
    resets: list[Reset] = []
    rejections: dict[str, str] = {}
    only_in_base: list[str] = []
    adoptions: list[Adoption] = []
    node_names: dict[str, str] = {}
    safeguards: Safeguards = Safeguards()
    duplicates: dict[str, str] = {}
    autoscalers: list[tuple[str, str]] = []


# No object of the API is nested half as deeply.
_MAX_DEPTH = 60


class Prepared(msgspec.Struct, frozen=True):
    """The objects of the input, each named and in its namespace.

    ``given`` is the input. ``documents`` are those that are applied, each object once. ``replaced`` are earlier
    documents of one object, each with the one that counts. ``hooks`` are all that the applying tool takes for its hooks
    and that are not ordinary objects as well; those of them that no installation or upgrade runs are not among the
    documents.
    """

    given: Sequence[ManifestDocument]
    documents: list[ManifestDocument]
    replaced: list[tuple[ManifestDocument, ManifestDocument]]
    hooks: list[ManifestDocument]


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a change is applied.

    Documents and deletions that say no namespace are in ``namespace``. With ``prunes``, objects that only the base has
    are deleted. What an autoscaler scales is simulated at its current size, or, with ``autoscaled_at_most``, at its
    most. Pods of Jobs run for ``job_seconds``, ``None`` for a guess. With ``creates_namespaces`` those that the change
    needs and that are not there are made first. Annotations of hooks and waves count if ``applied_by`` is the tool that
    reads them; ``None`` is kubectl by default.
    """

    namespace: str
    prunes: bool = False
    autoscaled_at_most: bool = False
    job_seconds: int | None = None
    creates_namespaces: bool = False
    applied_by: Applier | None = None

    @property
    def applier(self) -> Applier:
        """The tool whose hooks and waves count."""
        return self.applied_by or Applier.KUBECTL

    def prepared(self, documents: Sequence[ManifestDocument]) -> Prepared:
        """Objects that say no namespace are in ``namespace``; of several documents of one object the last counts.

        One with a ``generateName`` is given a name that no other has. Raises ``InputError`` for an object that has no
        name, kind or API version, or is nested too deeply.
        """
        versions: dict[tuple[str, str, str], list[ManifestDocument]] = {}
        hooks: dict[tuple[str, str, str], ManifestDocument] = {}
        names = _Names(documents)
        for index, given in enumerate(documents):
            document = _named(given, self.namespace, names)
            each = msgspec.structs.replace(given, document=document)
            # The same for documents of one object, in whichever version of its API; one without a name is alone.
            kind = document["kind"] if is_known(document) else f"{document['kind']}.{group_of(document)}"
            metadata = document["metadata"]
            key = kind, metadata.get("namespace") or "", metadata["name"] or f"\0{index}"
            if hook_of(document, self.applier)[0]:
                hooks[key] = each
            if not is_omitted(document, self.applier):
                versions[key] = [*versions.pop(key, []), each]
        ordinary = {key for key, own in versions.items() for each in own if not hook_of(each.document, self.applier)[0]}
        return Prepared(
            given=documents,
            documents=[own[-1] for own in versions.values()],
            replaced=[(each, own[-1]) for own in versions.values() for each in own[:-1]],
            hooks=[each for key, each in hooks.items() if key not in ordinary],
        )


class _Names:
    """The names that the input gives, and those that stand for what the API server makes up."""

    def __init__(self, documents: Iterable[ManifestDocument]) -> None:
        metadata = (mapping_in(each.document, "metadata") for each in documents)
        self._taken = {each["name"] for each in metadata if isinstance(each.get("name"), str)}
        self._drawn: Counter[str] = Counter()

    def drawn(self, stem: str) -> str:
        """A name that no other object has; none without a stem."""
        name = ""
        while stem and (not name or name in self._taken):
            self._drawn[stem] += 1
            number = self._drawn[stem]
            name = joined(stem.rstrip("-"), NEW if number == 1 else f"{NEW}-{number}")
        self._taken.add(name)
        return name


def is_nested_too_deeply(value: Any) -> bool:
    """Whether mappings and lists are within one another to a depth that no object of the API has."""
    level = [value]
    for _ in range(_MAX_DEPTH):
        level = [
            inner
            for each in level
            for inner in (each.values() if isinstance(each, dict) else each)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return False
    return True


def _named(given: ManifestDocument, namespace: str, names: _Names) -> Document:
    document = given.document
    kind = document.get("kind")
    shown = kind[:80] if isinstance(kind, str) and kind else "object"
    reader = DocumentReader(shown, given.source, given.line)
    if not isinstance(kind, str) or not kind:
        raise reader.error("is missing" if kind is None else "expected a string", "kind")
    version = document.get("apiVersion")
    if not isinstance(version, str) or not version:
        raise reader.error("is missing" if version is None else "expected a string", "apiVersion")
    is_considered = is_known(document)
    if is_considered and is_nested_too_deeply(document):
        raise reader.error("is nested too deeply", "")
    metadata = dict(reader.mapping(document, "metadata"))
    name = reader.name(metadata, "name") or names.drawn(reader.name(metadata, "generateName"))
    if not name and is_considered:
        raise reader.error("is missing", "metadata.name")
    metadata["name"] = name
    where = reader.name(metadata, "namespace") or namespace
    metadata.pop("namespace", None)
    if is_namespaced(document):
        metadata["namespace"] = where
    named = {**document, "metadata": metadata}
    reader = DocumentReader(describe(named), given.source, given.line)
    for key in ("labels", "annotations"):
        reader.texts(metadata, key, "metadata")
    return named


def place(given: ManifestDocument) -> str:
    """Where an object is written, in a sentence."""
    return f"{given.origin or given.source}:{given.line}"


def position(given: ManifestDocument) -> dict[str, Any]:
    """Where an object is written, as a ``Change`` has it."""
    return {"source": given.source, "line": given.line, "origin": given.origin}
