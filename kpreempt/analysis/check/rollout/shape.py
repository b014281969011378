"""Documents of the input made ready: bounded, in a namespace, each object once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from kpreempt.analysis.check.rollout.hooks import other_moments
from kpreempt.analysis.check.rollout.kinds import cluster_kind_of, is_namespaced, is_pod_owner
from kpreempt.analysis.check.rollout.records import ManifestDocument
from kpreempt.analysis.document_reader import NEW, Document, DocumentReader, describe
from kpreempt.analysis.workload_pods import joined
from kpreempt.errors import InputError
from kpreempt.verdict import Assumption, AssumptionKind

# No object of the API is nested half as deeply.
_MAX_DEPTH = 60


class Prepared(msgspec.Struct, frozen=True):
    """The objects of the input, each named and in its namespace, and what was passed over.

    ``assumptions`` tell of hooks that are left out, as no installation or upgrade runs them.
    """

    documents: list[ManifestDocument]
    notes: list[str]
    assumptions: list[Assumption] = []


def prepared(documents: Sequence[ManifestDocument], namespace: str) -> Prepared:
    """Objects that say no namespace are in ``namespace``; of several of one name the last counts.

    One with a ``generateName`` is given a name that no other has. Raises ``InputError`` for an object that has no
    name, kind or API version, or is nested too deeply.
    """
    latest: dict[tuple[str, str, str], ManifestDocument] = {}
    notes: list[str] = []
    left_out: list[Assumption] = []
    drawn: dict[str, int] = {}
    for index, each in enumerate(documents):
        document = _named(each, namespace, drawn)
        sign, moments = other_moments(document)
        if moments:
            message = f"a hook that runs at {moments} only: left out, as Helm and Argo CD leave it out of a rollout"
            left_out.append(
                Assumption(describe(document), f"metadata.annotations.{sign}", message, AssumptionKind.TOLD)
            )
            continue
        key = (str(document["kind"]), document["metadata"].get("namespace") or "", document["metadata"]["name"])
        earlier = latest.pop(key, None) if key[2] else None
        if earlier is not None:
            notes.append(f"{describe(document)} is there twice: {_place(each)} counts, {_place(earlier)} does not")
        latest[key if key[2] else (*key[:2], f"\0{index}")] = msgspec.structs.replace(each, document=document)
    return Prepared(list(latest.values()), notes, left_out)


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


def _named(given: ManifestDocument, namespace: str, drawn: dict[str, int]) -> Document:
    document = given.document
    reader = DocumentReader(_kind_shown(document), given.source, given.line)
    kind = document.get("kind")
    if not isinstance(kind, str) or not kind:
        raise reader.error("is missing" if kind is None else "expected a string", "kind")
    version = document.get("apiVersion")
    if not isinstance(version, str) or not version:
        raise reader.error("is missing" if version is None else "expected a string", "apiVersion")
    is_looked_at = is_pod_owner(document) or cluster_kind_of(document) is not None
    if is_looked_at and is_nested_too_deeply(document):
        raise reader.error("is nested too deeply", "")
    metadata = dict(reader.mapping(document, "metadata"))
    name = reader.name(metadata, "name") or _drawn(reader.name(metadata, "generateName"), drawn)
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


def _drawn(stem: str, drawn: dict[str, int]) -> str:
    """The name that stands for one that the API server makes up."""
    if not stem:
        return ""
    drawn[stem] = drawn.get(stem, 0) + 1
    end = NEW if drawn[stem] == 1 else f"{NEW}-{drawn[stem]}"
    return joined(stem.rstrip("-"), end)


def _place(given: ManifestDocument) -> str:
    return f"{given.origin or given.source}:{given.line}"


def position(given: ManifestDocument) -> dict[str, Any]:
    """Where an object is written, as a ``Change`` has it."""
    return {"source": given.source, "line": given.line, "origin": given.origin}


def error_at(given: ManifestDocument, problem: str, path: str) -> InputError:
    """An error at a field of an object."""
    return DocumentReader(describe(given.document), given.source, given.line).error(problem, path)
