"""Who last changed an owner or a node before a pod ended, from ``metadata.managedFields`` of complete documents.

The API server does not record deletions there: only what changed an object that still exists
(``k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager``, v0.36.3).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from kpreempt.analysis.document_reader import Document
from kpreempt.model.documents import mapping_in
from kpreempt.verdict.who_evicted import ObjectChange

# What makes an owner delete pods, and what a drain changes first.
_OF_OWNERS = ("replicas", "template")
_OF_NODES = ("unschedulable",)
# Times of managed fields are full seconds, and controllers act after a change.
_LATE = timedelta(seconds=2)
# An older change hardly explains the end of a pod.
_RECENT = timedelta(minutes=2)
_STEPS = 4


class Changes:
    """The changes of owners and nodes, by their documents."""

    def __init__(self, documents: Iterable[Document] = ()) -> None:
        self._documents: dict[tuple[str, str, str], Document] = {}
        for each in documents:
            metadata = mapping_in(each, "metadata")
            self._documents[each.get("kind", ""), metadata.get("namespace") or "", metadata.get("name", "")] = each

    def of_owner(self, kind: str, namespace: str, name: str, at: datetime | None) -> list[ObjectChange]:
        """The last changes of the size and template of an owner, or of the owners above it, before ``at``.

        A change by the object's own controller is left out if the owner of that was changed.
        """
        found: list[ObjectChange] = []
        for _ in range(_STEPS):
            document = self._documents.get((kind, namespace, name))
            if document is None:
                break
            changes = list(_changes(document, _OF_OWNERS, at))
            if changes:
                found = changes
            owner = next(
                (
                    each
                    for each in mapping_in(document, "metadata").get("ownerReferences") or ()
                    if each.get("controller")
                ),
                None,
            )
            if owner is None:
                break
            kind, name = owner.get("kind", ""), owner.get("name", "")
        return found

    def of_node(self, name: str, at: datetime | None) -> ObjectChange | None:
        """What cordoned the node before ``at``, or ``None``."""
        document = self._documents.get(("Node", "", name))
        return next(_changes(document, _OF_NODES, at), None) if document is not None else None


def _changes(document: Document, fields: Iterable[str], at: datetime | None) -> Iterator[ObjectChange]:
    metadata = mapping_in(document, "metadata")
    entries = metadata.get("managedFields")
    for entry in sorted(
        entries if isinstance(entries, list) else (), key=lambda each: str(each.get("time")), reverse=True
    ):
        changed = [name for name in fields if f"f:{name}" in _spec_of(entry)]
        time = _time(entry.get("time"))
        if not changed or time is None:
            continue
        if at is not None and not at - _RECENT <= time <= at + _LATE:
            continue
        yield ObjectChange(
            object=f"{document.get('kind')} {metadata.get('name')}",
            fields=[f"spec.{name}" for name in changed],
            manager=str(entry.get("manager") or ""),
            at=time,
        )


def _spec_of(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    return mapping_in(entry, "fieldsV1", "f:spec")


def _time(text: object) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
