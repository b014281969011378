"""The objects of a change: as in the input, prepared, and planned.

Prepared objects are bounded, have a namespace, and occur once. The plan describes how the change alters the cluster's
objects, before any controller or scheduler acts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.admission.validation.problems import DEFAULT_MINOR, Problem
from kpreempt.analysis.check.rollout.hooks import Applier, Order, hook_of, is_omitted
from kpreempt.analysis.check.rollout.kinds import is_known, is_namespaced
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe
from kpreempt.analysis.explain.rejections import LineOf
from kpreempt.analysis.naming import some_of
from kpreempt.analysis.workload_pods import PodTemplate, joined
from kpreempt.errors import InputError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.documents import Path, group_of, mapping_in
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change


class ManifestDocument(msgspec.Struct, frozen=True):
    """An object of the input as plain data, with its source.

    ``origin`` is the file named by a ``# Source:`` comment, which Helm writes; else it is empty. ``text`` is the text
    of its whole source, or empty if it is not available.
    """

    document: Document
    source: str = ""
    line: int = 0
    origin: str = ""
    text: bytes = b""


class NotSimulatedError(InputError):
    """An object that the API server accepts, and that cannot be simulated."""


def line_of_object(_text: bytes, line: int, _path: Path) -> int:
    """Return the line of the object, for texts in which fields are not searched for."""
    return line


class PlannedWorkload(msgspec.Struct, frozen=True, kw_only=True):
    """A workload that the change creates, changes or deletes.

    ``kind``, ``namespace`` and ``name`` identify the object that owns the pods; for a CronJob, the Job it creates.
    ``before`` is the object in the cluster (``None`` if new); ``after`` is the new object with the API's defaults
    (``None`` if deleted). If the snapshot has only a part of it, so does ``before``, and ``is_same_template`` is false.
    ``replica_sets`` are those that a Deployment owns in the cluster.
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
    """Objects whose namespace does not exist when they are applied, by namespace.

    Namespaces in ``absent`` do not exist at all; those in ``late`` are created by the change, but after these objects.
    ``assumptions`` apply if the cluster's namespaces are unknown.
    """

    absent: dict[str, list[str]] = {}
    late: dict[str, list[str]] = {}
    assumptions: list[Assumption] = []

    @property
    def objects(self) -> list[str]:
        """All objects that are not applied."""
        return [name for own in (*self.absent.values(), *self.late.values()) for name in own]

    @property
    def detail(self) -> str:
        """What is wrong, and which objects are not applied because of it."""
        return "; ".join(
            f"{words}; not applied: {some_of(own)}"
            for found, words in (
                (self.absent, "neither in the cluster nor in the change"),
                (self.late, "the change creates it only after the objects in it"),
            )
            if (own := [name for names in found.values() for name in names])
        )


class Reset(msgspec.Struct, frozen=True):
    """A manifest that resets the replicas of a workload that an autoscaler has scaled."""

    workload: str
    autoscaler: str
    current: int
    written: int


class Adoption(msgspec.Struct, frozen=True, kw_only=True):
    """Objects without a controller (``Pod shop/one``) that ``owner`` adopts because its selector matches them.

    ``change`` is the object of the change that causes it. ``surplus`` is the number of adopted objects that the
    controller deletes because it has too many; ``None`` if the simulation shows it.
    """

    owner: str
    objects: list[str]
    change: str
    surplus: int | None = None


class Safeguards(msgspec.Struct, frozen=True, kw_only=True):
    """Other effects of a change on the protection of pods, which the cluster before and after does not show.

    ``minimum_sizes`` are the minimum replicas set by HorizontalPodAutoscalers, by kind, namespace and name of the
    workload, before and after the change. ``released`` maps objects whose manifests lack their controller in the
    cluster to that controller. ``cron_jobs`` has the pod specs of CronJobs before and after. ``workloads`` are the
    cluster's documents of workloads, if the change includes PriorityClasses.
    """

    minimum_sizes: tuple[Mapping[tuple[str, str, str], int], Mapping[tuple[str, str, str], int]] = ({}, {})
    released: Mapping[str, str] = {}
    cron_jobs: Mapping[str, tuple[Document, Document]] = {}
    workloads: list[Document] = []


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What a change does.

    - ``changes`` are all objects in the order of the input, including unchanged ones, followed by the deletions.
    - ``workloads`` are the changed ones that have pods. ``pods`` are plain pods, not admitted yet; ``deleted_pods`` are
      the ``namespace/name`` of plain pods that are deleted, some of which are recreated by ``pods``.
    - ``deleted_nodes`` are deleted together with their pods.
    - ``cluster`` is the cluster with all other objects of the change applied. ``notes`` list ignored input.
    - ``order`` has the stages in which objects are applied. Objects without a namespace are not simulated.
    - ``job_seconds`` is the run time of Jobs' pods unless known otherwise; ``None`` is a guess, 0 means that they never
      end.
    - ``resets`` are replicas set by an autoscaler that the apply resets. ``autoscalers`` are new or changed ones with
      their workloads, unless their maximum replicas are simulated.
    - ``accounts`` are the ServiceAccounts after the change, if all of them are known.
    - ``rejections`` maps objects that the API server rejects, and that are not simulated, to the reason.
      ``rejected_pods`` does so for workloads whose pods admission policies reject. ``webhooks`` may change pods.
    - ``only_in_base`` are objects that the base has, the manifests lack, and nothing prunes.
    - ``adoptions`` concern pods and ReplicaSets without a controller. ``node_names`` maps objects of the change to a
      node that their pods newly name. ``duplicates`` describes the superseded documents of objects that occur more than
      once.
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
    accounts: list[Document] = []
    rejections: dict[str, str] = {}
    rejected_pods: dict[str, str] = {}
    webhooks: list[str] = []
    only_in_base: list[str] = []
    adoptions: list[Adoption] = []
    node_names: dict[str, str] = {}
    safeguards: Safeguards = Safeguards()
    duplicates: dict[str, str] = {}
    autoscalers: list[tuple[str, str]] = []


# No object of the API is nested half as deeply.
_MAX_DEPTH = 60


class Prepared(msgspec.Struct, frozen=True):
    """The objects of the input, with names and namespaces.

    ``input`` is the input. ``documents`` are the applied objects, each once. ``replaced`` pairs superseded documents
    with the one that counts. ``hooks`` are all objects that the tool treats as hooks and that are not ordinary objects
    as well; hooks that no installation or upgrade runs are not among ``documents``. ``invalid`` are those that have no
    name or cannot be read, each with the reason; they are in none of the others.
    """

    input: Sequence[ManifestDocument]
    documents: list[ManifestDocument]
    replaced: list[tuple[ManifestDocument, ManifestDocument]]
    hooks: list[ManifestDocument]
    invalid: list[tuple[ManifestDocument, InputError]] = []


class ServerDecisions(msgspec.Struct, frozen=True):
    """What the API server decided in a dry run of a change, by object.

    ``rejections`` has its words. Objects that are neither there nor ``accepted`` were not decided; ``assumptions`` has
    the reasons, and its warnings.
    """

    accepted: frozenset[str] = frozenset()
    rejections: Mapping[str, Problem] = {}
    assumptions: Sequence[Assumption] = ()


class ApplyOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How a change is applied.

    Documents and deletions without a namespace are in ``namespace``. With ``prunes``, objects that only the base has
    are deleted. Autoscaled workloads are simulated at their current size, or at their maximum with
    ``max_autoscaled``. ``job_seconds`` is the run time of Jobs' pods (``None``: a guess). With
    ``creates_namespaces``, missing namespaces are created first. Annotations of hooks and waves count if ``applied_by``
    is the tool that reads them (default: kubectl). ``minor`` is the minor version of the API server, ``None`` if
    unknown: then objects have the fields of all versions, and the rules of ``assumed_minor`` apply. ``line_of`` finds
    the line of a field. ``decisions`` are those of a dry run; without one, there are none.
    """

    namespace: str
    prunes: bool = False
    max_autoscaled: bool = False
    job_seconds: int | None = None
    creates_namespaces: bool = False
    applied_by: Applier | None = None
    minor: int | None = None
    assumed_minor: int = DEFAULT_MINOR
    line_of: LineOf = line_of_object
    decisions: ServerDecisions = ServerDecisions()

    @property
    def applier(self) -> Applier:
        """The tool whose hooks and waves count."""
        return self.applied_by or Applier.KUBECTL

    def prepared(self, documents: Sequence[ManifestDocument]) -> Prepared:
        """Prepare the objects: set the default namespace, generate names, and keep the last document of each object."""
        versions: dict[tuple[str, str, str], list[ManifestDocument]] = {}
        hooks: dict[tuple[str, str, str], ManifestDocument] = {}
        invalid: list[tuple[ManifestDocument, InputError]] = []
        names = _Names(documents)
        for index, given in enumerate(documents):
            try:
                document = _named(given, self.namespace, names)
            except InputError as error:
                invalid.append((given, error))
                continue
            each = msgspec.structs.replace(given, document=document)
            # Equal for documents of one object, in any version of its API; an object without a name is unique.
            kind = document["kind"] if is_known(document) else f"{document['kind']}.{group_of(document)}"
            metadata = document["metadata"]
            key = kind, metadata.get("namespace") or "", metadata["name"] or f"\0{index}"
            if hook_of(document, self.applier)[0]:
                hooks[key] = each
            if not is_omitted(document, self.applier):
                versions[key] = [*versions.pop(key, []), each]
        ordinary = {key for key, own in versions.items() for each in own if not hook_of(each.document, self.applier)[0]}
        unreadable = {id(given) for given, _ in invalid}
        return Prepared(
            input=[each for each in documents if id(each) not in unreadable],
            invalid=invalid,
            documents=[own[-1] for own in versions.values()],
            replaced=[(each, own[-1]) for own in versions.values() for each in own[:-1]],
            hooks=[each for key, each in hooks.items() if key not in ordinary],
        )


class _Names:
    """The names in the input, and generated names."""

    def __init__(self, documents: Iterable[ManifestDocument]) -> None:
        metadata = (mapping_in(each.document, "metadata") for each in documents)
        self._taken = {each["name"] for each in metadata if isinstance(each.get("name"), str)}
        self._drawn: Counter[str] = Counter()

    def drawn(self, stem: str) -> str:
        """A generated name that no other object has; empty without a stem."""
        name = ""
        while stem and (not name or name in self._taken):
            self._drawn[stem] += 1
            number = self._drawn[stem]
            name = joined(stem.rstrip("-"), NEW if number == 1 else f"{NEW}-{number}")
        self._taken.add(name)
        return name


def is_nested_too_deeply(value: Any) -> bool:
    """Whether mappings and lists are nested more deeply than in any object of the API."""
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
    is_relevant = is_known(document)
    if is_relevant and is_nested_too_deeply(document):
        raise reader.error("is nested too deeply", "")
    metadata = dict(reader.mapping(document, "metadata"))
    name = reader.name(metadata, "name") or names.drawn(reader.name(metadata, "generateName"))
    if not name and is_relevant:
        raise reader.error("is missing", "metadata.name")
    metadata["name"] = name
    target = reader.name(metadata, "namespace") or namespace
    metadata.pop("namespace", None)
    if is_namespaced(document):
        metadata["namespace"] = target
    named = {**document, "metadata": metadata}
    reader = DocumentReader(describe(named), given.source, given.line)
    for key in ("labels", "annotations"):
        reader.texts(metadata, key, "metadata")
    return named


def name_of(document: Document, namespace: str) -> str:
    """The kind and name of an object, in ``namespace`` if it is namespaced and names none."""
    metadata = mapping_in(document, "metadata")
    is_in_it = is_namespaced(document) and not metadata.get("namespace")
    return describe({**document, "metadata": {**metadata, "namespace": namespace}} if is_in_it else document)


def place(given: ManifestDocument) -> str:
    """The source of an object as text."""
    return f"{given.origin or given.source}:{given.line}"


def position(given: ManifestDocument) -> dict[str, Any]:
    """The source of an object, as fields of ``Change``."""
    return {"source": given.source, "line": given.line, "origin": given.origin}
