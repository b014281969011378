"""Objects without a kind, recognized by the layout of their dump.

- OpenShift's Insights archive: ``config/pod/NS/NAME.json``, ``config/node/NAME.json``, ``config/pdbs/NS/NAME.json``
  (``openshift/insights-operator`` ``docs/insights-archive-sample``).
- Troubleshoot's support bundle: ``cluster-resources/pods/NS.json``, ``cluster-resources/nodes.json``;
  ``cluster-resources/KIND-errors.json`` says why a kind could not be read, and ``cluster-info/cluster_version.json``
  has the server's version.
- The export of kube-scheduler-simulator: ``{"pods": [...], "nodes": [...]}``.
- The output of ``cluster-info dump`` in old releases of kubectl: Kubernetes' internal types with their Go names.

Any other value without a kind that looks like an object, or like a list of objects, is an error: kubectl writes
``kind`` after ``items``, so it is most likely a dump that was cut off.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.cluster import FORBIDDEN
from kpreempt.model.kinds import KINDS, Kind
from kpreempt.snapshot.batches import INCOMPLETE, Batch, fixed_line, is_extension, no_kind
from kpreempt.snapshot.decode import Json, parse_json_of
from kpreempt.snapshot.kinds import plural_of
from kpreempt.snapshot.sources import LineCounter, Source

_INSIGHTS, _BUNDLE = "config", "cluster-resources"
_ERRORS = "-errors.json"
# The beginning of an object or a list, and fields that only API servers set.
_VERSIONED = re.compile(rb"^ {0,4}(?:- )?apiVersion: ", re.MULTILINE)
_SERVED = re.compile(rb"^[ -]+(?:uid|resourceVersion): \S", re.MULTILINE)
_PREFIX_BYTES = 2**20
_NOT_FOUND, _FAILED = 404, 500
_ALIASES = {
    "pdbs": "PodDisruptionBudget",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
}
_KIND_OF: dict[str, Kind] = {
    **{plural_of(kind): kind for kind in KINDS.values()},
    **{kind.name.lower(): kind for kind in KINDS.values()},
    **{alias: KINDS[name] for alias, name in _ALIASES.items()},
}
# The lists in kube-scheduler-simulator's export (``simulator/snapshot/snapshot.go`` ``ResourcesForSnap``).
_EXPORTED = {
    "pods": "Pod",
    "nodes": "Node",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "storageClasses": "StorageClass",
    "priorityClasses": "PriorityClass",
    "namespaces": "Namespace",
}
_EXPORTED_CONFIGURATION = "schedulerConfig"
_RAW_LIST = msgspec.json.Decoder(list[msgspec.Raw])
_RAW_FIELDS = msgspec.json.Decoder(dict[str, msgspec.Raw])


class DumpLayout:
    """Handles values without a kind in one input, which may be a directory or an archive with many files.

    A call raises ``InputError`` for an unknown value that looks like an object, and for any unknown value in a file
    that the user named.
    """

    def __init__(self) -> None:
        self._is_insights = False
        self._undecided: list[InputError] = []

    def __call__(self, name: str, json: Json, line: int, *, is_named: bool) -> Iterator[Batch]:
        """Yield the objects in a value without a kind."""
        document = parse_json_of(json, name, line)
        if document is None or is_extension(document):
            return
        path = name.replace(":", "/").split("/")
        found = self._known(path, name, json, document, line)
        if found is not None:
            yield from found
        elif is_named or looks_like_objects(document):
            unknown = no_kind(document, name, line)
            if is_named or _INSIGHTS not in path or not isinstance(document, dict):
                raise unknown
            self._undecided.append(unknown)

    def errors(self) -> list[InputError]:
        """Return errors found at the end of the input: objects of other kinds, unless it is an Insights archive."""
        return [] if self._is_insights else self._undecided

    def _known(self, path: Sequence[str], name: str, json: Json, document: Any, line: int) -> Sequence[Batch] | None:
        """Return the objects, if the layout of the value is known."""
        # The ``cluster_version.json`` of a support bundle.
        if version := _text_at(document, "info", "gitVersion"):
            return [Batch(name, [], fixed_line(line), version=version)]
        if _BUNDLE in path and path[-1].endswith(_ERRORS):
            # A kind could not be read, according to a bundle's file with errors.
            unread = _kind_of([*path[:-1], path[-1].removesuffix(_ERRORS) + ".json"])
            if unread is None or not document:
                return []
            text = msgspec.json.encode(document).decode().lower()
            status = FORBIDDEN if "forbidden" in text or "cannot list" in text or "unauthorized" in text else _FAILED
            if "could not find the requested resource" in text or "no matches for kind" in text:
                status = _NOT_FOUND
            # Other files of this bundle cannot have what is missing.
            bundle = name.partition(_BUNDLE)[0] + _BUNDLE
            return [Batch(bundle, [], fixed_line(0), unread=msgspec.json.encode({unread.name: status}).decode())]
        if isinstance(document, dict):
            # The ``config/version.json`` of an Insights archive.
            if list(path[-2:]) == [_INSIGHTS, "version.json"] and (openshift := openshift_version(document)):
                self._is_insights = True
                return [Batch(name, [], fixed_line(line), openshift=openshift)]
            if _has_go_names(document):
                return _from_go(path, name, document, line)
            lists = [key for key in document if key in _EXPORTED and isinstance(document[key], list | None)]
            is_complete = len(document.keys() - {*lists, _EXPORTED_CONFIGURATION}) == 0
            if is_complete and {"pods", "nodes"} & {*lists}:
                fields = _RAW_FIELDS.decode(json)
                found = [Batch(name, [], fixed_line(line))]
                for key, exported in _EXPORTED.items():
                    if bytes(fields.get(key, b"null")) != b"null":
                        found.append(_batch(name, _RAW_LIST.decode(fields[key]), line, KINDS[exported]))
                if bytes(fields.get(_EXPORTED_CONFIGURATION, b"null")) != b"null":
                    # Count it among the objects that are not read.
                    configuration = fields[_EXPORTED_CONFIGURATION]
                    found.append(Batch(name, [configuration], fixed_line(line), kind="KubeSchedulerConfiguration"))
                return found
        kind = _kind_of(path)
        if kind is None:
            return _array(name, json, document, line, "") if _BUNDLE in path else None
        if isinstance(document, dict) and _has_name(document):
            self._is_insights |= _INSIGHTS in path
            return [_batch(name, [json], line, kind)]
        if _BUNDLE not in path:
            return None
        if isinstance(document, dict) and isinstance(document.get("items"), list):
            return [_batch(name, _RAW_LIST.decode(_RAW_FIELDS.decode(json)["items"]), line, kind)]
        return _array(name, json, document, line, kind.name)


def check_complete(source: Source) -> None:
    """Raise ``InputError`` for a YAML dump that ends in the middle of a line.

    YAML that is cut off can still be valid. But API server output was written by a program, which ends every line.
    """
    content = source.content
    if content is None or content[-1:] == b"\n" or not _VERSIONED.search(content[:_PREFIX_BYTES]):
        return
    if not _SERVED.search(content[-_PREFIX_BYTES:]):
        return
    line = LineCounter(content).line_at(len(content))
    raise InputError("ends in the middle of a line", source=source.name, line=line, hint=INCOMPLETE)


def openshift_version(document: Any) -> str:
    """Return the version that a ClusterVersion of OpenShift states, or an empty string."""
    return _text_at(document, "status", "desired", "version")


def _text_at(document: Any, *keys: str) -> str:
    """Return the string at the keys of a document, or an empty string."""
    for key in keys:
        document = document.get(key) if isinstance(document, dict) else None
    return document if isinstance(document, str) else ""


def kubernetes_version(openshift: str) -> str:
    """Return the Kubernetes version of an OpenShift 4 version: ``v1.33`` for ``4.20.3``; empty for any other."""
    found = re.match(r"4\.([0-9]{1,3})(?:\.|\Z)", openshift)
    return f"v1.{int(found[1]) + 13}" if found else ""


def _kind_of(path: Sequence[str]) -> Kind | None:
    """Return the kind that an archive's directories, or the name of a file in it, stand for."""
    for root in (_BUNDLE, _INSIGHTS):
        if root in path:
            below = path[len(path) - 1 - list(reversed(path)).index(root) + 1 :]
            stem = below[-1].partition(".")[0] if below and root == _BUNDLE else ""
            for segment in (*below[:-1], stem):
                if kind := _KIND_OF.get(segment.lower().replace("-", "").replace("_", "")):
                    return kind
    return None


def _array(name: str, json: Json, document: Any, line: int, kind: str) -> list[Batch] | None:
    """Return the objects of an array; ``kind`` is their kind if they do not state one."""
    if not isinstance(document, list) or not all(
        _has_name(each) and (kind or isinstance(each.get("kind"), str)) for each in document
    ):
        return None
    return [_batch(name, _RAW_LIST.decode(json), line, KINDS.get(kind))]


def _batch(name: str, objects: Sequence[Json], line: int, kind: Kind | None) -> Batch:
    version = "/".join(filter(None, (kind.groups[0], kind.version or "v1"))) if kind else ""
    return Batch(name, objects, fixed_line(line), kind=kind.name if kind else "", api_version=version)


def _has_name(document: Any) -> bool:
    metadata = document.get("metadata") if isinstance(document, dict) else None
    return isinstance(metadata, dict) and isinstance(metadata.get("name") or metadata.get("generateName"), str)


def looks_like_objects(document: Any) -> bool:
    """Return whether a value is an incomplete Kubernetes object or list of objects."""
    if isinstance(document, list):
        return any(_has_name(each) for each in document)
    if not isinstance(document, dict):
        return False
    items = document.get("items")
    if isinstance(items, list):
        return not items or any(isinstance(each, dict) and "metadata" in each for each in items)
    # A Helm chart has an API version but no kind.
    is_chart = isinstance(document.get("name"), str) and "metadata" not in document
    has_parts = _has_name(document) or _has_go_names(document) or isinstance(document.get("spec"), dict)
    return has_parts or ("apiVersion" in document and not is_chart)


# Kubernetes' internal types have Go names, except for the metadata.

_OF_METADATA = frozenset(
    (
        *("name", "generateName", "namespace", "selfLink", "uid", "resourceVersion", "generation"),
        *("creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "labels", "annotations"),
        *("ownerReferences", "finalizers", "clusterName"),
    )
)
# Their keys are names chosen by the user.
_MAPS = frozenset(
    (
        *("labels", "annotations", "nodeSelector", "matchLabels", "capacity", "allocatable", "requests", "limits"),
        *("hard", "used", "default", "defaultRequest", "max", "min", "maxLimitRequestRatio", "overhead"),
    )
)
_EMBEDDED = frozenset(("VolumeSource", "PersistentVolumeSource", "Handler"))
_INITIALS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]")
_RESOURCE = re.compile(r"/([a-z]+)(?:/[^/]*)?\Z")


def _has_go_names(document: dict[str, Any]) -> bool:
    return "items" not in document and (
        "Items" in document
        or ("Spec" in document and "spec" not in document and _go_metadata(document) != {})
        or isinstance(document.get("ObjectMeta"), dict)
    )


def _from_go(path: Sequence[str], name: str, document: dict[str, Any], line: int) -> list[Batch] | None:
    """Convert an object or a list to the API's names; ``None`` if its kind cannot be determined."""
    items = (document["Items"] or []) if "Items" in document else [document]
    if not isinstance(items, list) or not all(isinstance(each, dict) for each in items):
        return None
    by_name = _KIND_OF.get(path[-1].partition(".")[0].replace("-", ""))
    found = [Batch(name, [], fixed_line(line))]
    for each in items:
        kind = _kind_by_link(document) or _kind_by_link(each) or by_name or _kind_by_shape(each)
        if kind is None:
            return None
        left_out = {*_OF_METADATA, "TypeMeta", "ObjectMeta", "metadata"}
        renamed: dict[str, Any] = _renamed({key: value for key, value in each.items() if key not in left_out})
        spec = renamed.get("spec")
        if isinstance(spec, dict) and isinstance(context := spec.get("securityContext"), dict):
            # In Kubernetes' internal types, these are part of the security context.
            spec |= {key: context[key] for key in ("hostNetwork", "hostPID", "hostIPC") if key in context}
        found.append(_batch(name, [msgspec.json.encode({"metadata": _go_metadata(each), **renamed})], line, kind))
    return found


def _kind_by_link(document: dict[str, Any]) -> Kind | None:
    link = _go_metadata(document).get("selfLink")
    found = _RESOURCE.search(link) if isinstance(link, str) else None
    return _KIND_OF.get(found[1]) if found else None


def _kind_by_shape(document: dict[str, Any]) -> Kind | None:
    spec, status = document.get("Spec"), document.get("Status")
    if isinstance(spec, dict) and "Containers" in spec:
        return KINDS["Pod"]
    return KINDS["Node"] if isinstance(status, dict) and "NodeInfo" in status else None


def _go_metadata(document: dict[str, Any]) -> dict[str, Any]:
    """Return the metadata of an object, which may be among its own fields or in a single field."""
    found = {key: value for key, value in document.items() if key in _OF_METADATA}
    for key in ("ListMeta", "ObjectMeta", "metadata"):
        if isinstance(document.get(key), dict):
            found |= _renamed(document[key])
    return found


def _renamed(value: Any, key: str = "") -> Any:
    """Return a value with the API's field names."""
    if isinstance(value, list):
        return [_renamed(each) for each in value]
    is_map = key in _MAPS or (key == "selector" and isinstance(value, dict) and "MatchLabels" not in value)
    if not isinstance(value, dict) or is_map:
        return value
    renamed: dict[str, Any] = {}
    for name, each in value.items():
        if name in _EMBEDDED and isinstance(each, dict):
            renamed |= _renamed(each)
        else:
            api_name = _INITIALS.sub(lambda found: found[0].lower(), name, count=1) if name[:1].isupper() else name
            renamed[api_name] = _renamed(each, api_name)
    return renamed
