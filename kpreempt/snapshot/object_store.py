"""The complete objects that plugins request, filed by kind as they arrive."""

from __future__ import annotations

from collections.abc import Container
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.extra_fields import ExtraFields, ObjectKind
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.model.meta import DEFAULT_NAMESPACE, LAST_APPLIED, AnnotatedMeta
from kpreempt.snapshot.decode import BadObjectError, Json, is_later, parse_json, record_of
from kpreempt.snapshot.kinds import plural_of
from kpreempt.verdict import Assumption


class _CheckedObject(msgspec.Struct, frozen=True):
    """The fields of an object that are checked, whatever else it has."""

    metadata: AnnotatedMeta = AnnotatedMeta()


class StoredObject(NamedTuple):
    """An object: its identity, its document, and whether it is from a kpreempt dump, which leaves most of it out."""

    names: _CheckedObject
    document: dict[str, Any]
    is_partial: bool


class ObjectStore:
    """Stores the objects of the wanted kinds."""

    def __init__(self, extra_fields: ExtraFields, *, defaults_namespace: bool) -> None:
        self._defaults_namespace = defaults_namespace
        self._by_kind: dict[str, list[ObjectKind]] = {}
        self._files: dict[str, dict[tuple[str, str], StoredObject]] = {}
        for kind in extra_fields.kinds:
            self._by_kind.setdefault(kind.kind, []).append(kind)
            self._files[kind.key] = {}

    def kind_of(self, name: str, api_version: str, kept: Kind | None) -> ObjectKind | None:
        """Return the wanted kind of an object; ``kept`` is its kind if snapshots have a record of it.

        Without a version, only the name counts, as for records.
        """
        group = api_version.rpartition("/")[0]
        for kind in self._by_kind.get(name, ()):
            groups = kept.groups if kept is not None else (group,)
            if kind.group in groups or (kept is None and not api_version):
                return kind
        return None

    def read(self, kind: ObjectKind, api_version: str, json: Json, *, is_partial: bool) -> StoredObject:
        """Read an object so that it can be filed. Raises ``BadObjectError``."""
        checked: _CheckedObject = record_of(Kind(kind.kind, "", _CheckedObject), json)
        meta = checked.metadata
        if not meta.name:
            raise BadObjectError(f"{kind.kind} {meta.namespace}".rstrip(), "metadata.name", "is missing")
        if kind.is_namespaced and self._defaults_namespace and not meta.namespace:
            meta = msgspec.structs.replace(meta, namespace=DEFAULT_NAMESPACE)
        document = parse_json(json)
        own = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
        # With its namespace, and without kubectl's last applied manifest.
        own["metadata"] = {**document["metadata"], **({"namespace": meta.namespace} if meta.namespace else {})}
        if "annotations" in own["metadata"]:
            annotations = {key: value for key, value in meta.annotations.items() if key != LAST_APPLIED}
            own["metadata"]["annotations"] = annotations
        if not api_version:
            usual = kind.version or "v1"
            api_version = f"{kind.group}/{usual}" if kind.group else usual
        return StoredObject(
            msgspec.structs.replace(checked, metadata=meta),
            {"apiVersion": api_version, "kind": kind.kind, **own},
            is_partial,
        )

    def add(self, kind: ObjectKind, stored: StoredObject) -> bool:
        """File an object that has no record.

        Of two objects with the same name, the one with the higher ``resourceVersion`` is kept, or the first if equal.
        Returns ``False`` if they differ and it is unknown which is later.
        """
        file, meta = self._files[kind.key], stored.names.metadata
        known = file.setdefault((meta.namespace, meta.name), stored)
        if known is stored or is_later(known.names, stored.names):
            return True
        if is_later(stored.names, known.names):
            file[meta.namespace, meta.name] = stored
            return True
        version = meta.resource_version
        is_same_version = bool(version) and version == known.names.metadata.resource_version
        return known.document == stored.document or is_same_version

    def add_extra(self, kind: ObjectKind, stored: StoredObject, *, is_kept: bool) -> None:
        """File an object next to its record.

        ``is_kept`` is whether its record is the one kept of two with the same name.

        An object equal to an earlier record adds what a kpreempt dump left out.
        """
        file, meta = self._files[kind.key], stored.names.metadata
        known = file.setdefault((meta.namespace, meta.name), stored)
        if is_kept or (known.is_partial and not is_later(known.names, stored.names)):
            file[meta.namespace, meta.name] = stored

    def forget(self, kind: ObjectKind) -> None:
        """Remove all objects of a kind, because they are read again."""
        self._files[kind.key].clear()

    def documents(self) -> dict[str, list[dict[str, Any]]]:
        """Return the documents by ``ObjectKind.key``, each kind in the order of the input."""
        return {key: [each.document for each in file.values()] for key, file in self._files.items()}

    def lacking(self, is_kept_complete: Container[str]) -> list[Assumption]:
        """List what is unknown about the wanted kinds because a kpreempt dump keeps few complete objects.

        Kinds in ``is_kept_complete``, by their keys, are complete in the dump.
        """
        found = []
        for kind in (each for kinds in self._by_kind.values() for each in kinds if each.key not in is_kept_complete):
            stored, is_record = self._files[kind.key].values(), is_always_kept(kind)
            if not any(each.is_partial for each in stored) if is_record else stored:
                continue
            kept_part, rest = ("little of each", "the rest") if is_record else ("none", "any")
            known = KINDS[kind.kind] if is_record else None
            # Without its plural, kubectl accepts the kind in lower case.
            plural = (kind.plural or kind.kind.lower()) if known is None else plural_of(known)
            scope = " -A" if (known or kind).is_namespaced else ""
            command = f"kubectl get {plural}{'.' if kind.group else ''}{kind.group}{scope}"
            why = f"a kpreempt dump keeps {kept_part}, so plugins do not see {rest}; "
            what = f"to include them, add the output of {command} -o yaml as another --snapshot"
            found.append(Assumption(kind.key, "snapshot", why + what))
        return found


def is_always_kept(kind: ObjectKind) -> bool:
    """Return whether every snapshot has records of the kind."""
    known = KINDS.get(kind.kind)
    return known is not None and kind.group in known.groups


_PODS = "to include them, add the output of kubectl get pods -A -o yaml as another --snapshot"
# What is unknown about pods from a kpreempt dump.
LACKING_ANNOTATIONS = Assumption(
    "Pod",
    "metadata.annotations",
    f"a kpreempt dump keeps hardly any, so plugins do not see the rest; {_PODS}",
)
LACKING_CONDITIONS = Assumption(
    "Pod",
    "status.conditions",
    "a kpreempt dump keeps few of them and hardly any times, so plugins do not see the rest; " + _PODS,
)
