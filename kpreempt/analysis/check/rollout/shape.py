"""Documents of the input made ready: bounded, in a namespace, each object once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.hooks import Applier, hook_of, is_left_out
from kpreempt.analysis.check.rollout.kinds import group_of, is_known, is_namespaced
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe, mapping_in
from kpreempt.analysis.workload_pods import joined
from kpreempt.errors import InputError

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
        """``prepared`` with these options."""
        return prepared(documents, self.namespace, self.applier)


def prepared(documents: Sequence[ManifestDocument], namespace: str, applier: Applier) -> Prepared:
    """Objects that say no namespace are in ``namespace``; of several documents of one object the last counts.

    One with a ``generateName`` is given a name that no other has. Raises ``InputError`` for an object that has no
    name, kind or API version, or is nested too deeply.
    """
    versions: dict[tuple[str, str, str], list[ManifestDocument]] = {}
    hooks: dict[tuple[str, str, str], ManifestDocument] = {}
    names = _Names(documents)
    for index, given in enumerate(documents):
        document = _named(given, namespace, names)
        each = msgspec.structs.replace(given, document=document)
        # What is the same for documents of one object, in whichever version of its API; one without a name is alone.
        kind = document["kind"] if is_known(document) else f"{document['kind']}.{group_of(document)}"
        metadata = document["metadata"]
        key = kind, metadata.get("namespace") or "", metadata["name"] or f"\0{index}"
        if hook_of(document, applier)[0]:
            hooks[key] = each
        if not is_left_out(document, applier):
            versions[key] = [*versions.pop(key, []), each]
    ordinary = {key for key, own in versions.items() for each in own if not hook_of(each.document, applier)[0]}
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
    reader = DocumentReader(_kind_shown(document), given.source, given.line)
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        raise reader.error("is missing" if kind is None else "expected a string", "kind")
    version = document.get("apiVersion")
    if not isinstance(version, str) or not version:
        raise reader.error("is missing" if version is None else "expected a string", "apiVersion")
    is_looked_at = is_known(document)
    if is_looked_at and is_nested_too_deeply(document):
        raise reader.error("is nested too deeply", "")
    metadata = dict(reader.mapping(document, "metadata"))
    name = reader.name(metadata, "name") or names.drawn(reader.name(metadata, "generateName"))
    if not name and is_looked_at:
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


def _kind_shown(document: Document) -> str:
    kind = document.get("kind")
    return kind[:80] if isinstance(kind, str) and kind else "object"


def place(given: ManifestDocument) -> str:
    """Where an object is written, in a sentence."""
    return f"{given.origin or given.source}:{given.line}"


def position(given: ManifestDocument) -> dict[str, Any]:
    """Where an object is written, as a ``Change`` has it."""
    return {"source": given.source, "line": given.line, "origin": given.origin}


def error_at(given: ManifestDocument, problem: str, path: str) -> InputError:
    """An error at a field of an object."""
    return DocumentReader(describe(given.document), given.source, given.line).error(problem, path)
