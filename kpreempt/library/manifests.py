"""Objects passed by a caller: plain data, a file's path, or an object of the Kubernetes client.

Objects with names that the API server rejects are found with their line numbers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kpreempt.admission.schema import decoded
from kpreempt.analysis.pod_inputs import subjects_of
from kpreempt.analysis.workload_pods import PodTemplate
from kpreempt.errors import InputError, UsageError
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.manifest import ManifestObject, line_of_field, manifest_in, read_manifest

if TYPE_CHECKING:
    from kpreempt.analysis.check.rollout.records import ManifestDocument


# A document as returned by ``yaml.safe_load``, a file or directory, or an object of the ``kubernetes`` package.
Manifest = Mapping[str, Any] | os.PathLike[str] | Any

_SOURCE = "manifest"


def objects_of(manifests: Manifest | Sequence[Manifest], input_limits: InputLimits) -> list[ManifestObject]:
    """Return all objects of the manifests, in order. Raises ``InputError``, and ``UsageError`` for any other type."""
    given = manifests if isinstance(manifests, Sequence) and not isinstance(manifests, str) else [manifests]
    return [found for each in given for found in _objects(each, input_limits)]


def templates_of(
    manifests: Manifest | Sequence[Manifest], namespace: str, input_limits: InputLimits
) -> list[PodTemplate]:
    """Return the pods in the manifests; ``namespace`` applies to those without one. Raises like ``objects_of``."""
    objects = objects_of(manifests, input_limits)
    given = [(each.document, each.source, each.line, each.text) for each in objects]
    return subjects_of(given, namespace, line_of_field).templates


def change_of(manifests: Manifest | Sequence[Manifest], input_limits: InputLimits) -> list[ManifestDocument]:
    """Return all objects of the manifests as documents of a change. Raises like ``objects_of``."""
    return as_change(objects_of(manifests, input_limits))


def as_change(objects: Iterable[ManifestObject]) -> list[ManifestDocument]:
    """Convert the objects to documents of a change, with paths relative to the current directory."""
    from kpreempt.analysis.check.rollout.records import ManifestDocument

    return [
        ManifestDocument(each.document, _from_here(each.source), each.line, each.origin, each.text) for each in objects
    ]


def _from_here(source: str) -> str:
    """Return an absolute path relative to the current directory, so that it matches a repository's files."""
    if not Path(source).is_absolute():
        return source
    try:
        directory = Path.cwd()
    except OSError:
        return source
    return str(Path(source).relative_to(directory)) if Path(source).is_relative_to(directory) else source


def as_list(manifests: Manifest | Sequence[Manifest], input_limits: InputLimits) -> bytes:
    """Return the objects as a JSON ``List``."""
    items = [each.document for each in objects_of(manifests, input_limits)]
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}, default=str).encode()


def _objects(manifest: Manifest, input_limits: InputLimits) -> list[ManifestObject]:
    if isinstance(manifest, os.PathLike):
        return read_manifest(os.fspath(manifest), input_limits=input_limits)
    if isinstance(manifest, Mapping):
        document = manifest
    elif hasattr(manifest, "attribute_map"):
        document = _of_client(manifest)
    else:
        hint = "a mapping, a pathlib.Path or an object of the kubernetes package"
        raise UsageError(f"expected a manifest, not {type(manifest).__name__}", hint=hint)
    if isinstance(document.get("items"), list) and isinstance(document.get("kind"), str):
        found = manifest_in(json.dumps(document, default=str).encode(), _SOURCE, input_limits)
        return [_checked(each.document) for each in found]
    return [_checked(document)]


def _of_client(value: Any) -> Any:
    """Convert an object of the kubernetes package to plain data with the API's field names."""
    names = getattr(value, "attribute_map", None)
    if names is not None:
        found = {key: _of_client(getattr(value, name)) for name, key in names.items()}
        return {key: each for key, each in found.items() if each is not None}
    if isinstance(value, Mapping):
        return {key: _of_client(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_of_client(each) for each in value]
    return value.isoformat() if isinstance(value, date) else value


def _checked(document: Any) -> ManifestObject:
    is_object = isinstance(document, Mapping) and isinstance(document.get("metadata"), Mapping)
    if not is_object or not isinstance(document.get("kind"), str):
        raise InputError("not a Kubernetes object: missing kind or metadata", source=_SOURCE)
    return ManifestObject(_SOURCE, 0, json.loads(json.dumps(document, default=str)))


def raise_if_rejected(objects: Iterable[ManifestObject]) -> None:
    """Raise ``InputError`` for the first object that every version of the API server rejects."""
    for each in objects:
        if problems := decoded(each.document)[1]:
            from kpreempt.analysis.explain.rejections import rejection_of

            line, reason = rejection_of(each.text, each.line, problems, line_of_field)
            raise InputError(reason, source=each.source, line=line)
