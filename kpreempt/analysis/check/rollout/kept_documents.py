"""Documents of workloads as kpreempt's dumps keep them: enough to compare a manifest with, without secrets.

Fields that the scheduler and controllers read are kept. All other strings are replaced with a digest, and so are
environments, commands, arguments and headers as one value each: a reader of the file can see that a value differs, and
can test a guess, but cannot read it. Digests are salted with data that is in no other dump. A manifest is converted to
such a document before a comparison (``alike``), so that no comparison needs to know about digests.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

import msgspec
from msgspec import inspect

from kpreempt.admission.defaults import container_defaults
from kpreempt.analysis.check.rollout.apply import FREE_MAPS, LAST_APPLIED, is_missing, last_applied
from kpreempt.analysis.check.rollout.autoscalers import KIND, is_autoscaler
from kpreempt.analysis.check.rollout.kinds import (
    ADMISSION,
    CLUSTER_KINDS,
    MUTATING,
    POD_OWNERS,
    VALIDATING,
    cluster_kind_of,
    is_pod_owner,
)
from kpreempt.analysis.check.rollout.records import is_nested_too_deeply
from kpreempt.analysis.document_reader import Document
from kpreempt.model.creation_failures import without_quotations
from kpreempt.model.documents import group_of, mapping_in, mappings_in
from kpreempt.model.meta import SALT, ObjectMeta, controller_of
from kpreempt.model.pod import PodAnnotations, PodSpec
from kpreempt.model.storage import BETA_STORAGE_CLASS_ANNOTATION, PersistentVolumeClaim
from kpreempt.model.workloads import is_about_missing_pods

_ACCOUNT = "ServiceAccount"
_DIGEST = "sha256:"
_LENGTH = 32
# Fields that get one digest, so that a single value cannot be guessed without the rest.
_HASHED_FIELDS = frozenset(
    {"env", "envFrom", "command", "args", "httpHeaders", "imagePullSecrets", "volumeAttributes", "options"}
)
# Maps whose values schedulers and controllers read.
_READ_MAPS = FREE_MAPS - {"annotations", "volumeAttributes", "userAnnotations", "options"}
# Fields that have defaults or determine them, and quantities.
_FIELDS_READ = frozenset(
    {"imagePullPolicy", "pullPolicy", "dnsPolicy", "terminationMessagePolicy", "scheme", "sizeLimit", "divisor"}
)
_DEFAULTS = frozenset(
    (
        *("/dev/termination-log", "/", "v1", "ReadWrite", "ext4", "default", "admin", "/etc/ceph/keyring"),
        *("ThinProvisioned", "xfs", "Filesystem"),
    )
)
_OF_CONTROLLERS = "deployment.kubernetes.io/"
_OF_STATUS = ("currentRevision", "updateRevision", "completedIndexes", "startTime")
_OF_CONDITIONS = ("type", "status", "reason", "lastTransitionTime")
# Annotations of pods that are read, and the one with the class of a claim.
_READ_ANNOTATIONS = frozenset(
    (BETA_STORAGE_CLASS_ANNOTATION, *(each.encode_name for each in msgspec.structs.fields(PodAnnotations)))
)
_METADATA = frozenset(each.encode_name for each in msgspec.structs.fields(ObjectMeta))

Hide = Callable[[Any], str]


def is_kept(kind: str, record: Any) -> bool:
    """Whether the document of an object belongs in a dump, because a manifest may be compared with it."""
    return (
        kind in POD_OWNERS
        or kind in (KIND, *MUTATING, *VALIDATING, _ACCOUNT)
        or (kind == "Pod" and controller_of(record.metadata) is None)
    )


def is_compared(document: Document) -> bool:
    """Whether a manifest may be compared with the document, by its kind and group."""
    if is_pod_owner(document) or is_autoscaler(document) or cluster_kind_of(document) is CLUSTER_KINDS["Pod"]:
        return True
    group, kind = group_of(document), document.get("kind")
    return (group == ADMISSION and kind in (*MUTATING, *VALIDATING)) or (group, kind) == ("", _ACCOUNT)


def salt_of(document: Document) -> str:
    """The salt of a document from a kpreempt dump; empty for a complete document."""
    salt = mapping_in(document, "metadata", "annotations").get(SALT)
    return salt if isinstance(salt, str) else ""


def is_digest(value: Any) -> bool:
    """Whether a value of a dump stands for another value."""
    return isinstance(value, str) and value.startswith(_DIGEST) and len(value) == len(_DIGEST) + _LENGTH


def salt_for(documents: Iterable[Document]) -> str:
    """A salt that is derived from the documents, so that it is unknown without them and stable for the same ones."""
    digest = hashlib.sha256()
    for each in documents:
        if not is_nested_too_deeply(each):
            digest.update(msgspec.json.encode(each))
    return digest.hexdigest()[:_LENGTH]


def alike(document: Document, live: Document) -> Document:
    """Convert the manifest like the cluster's document ``live``, so that the two can be compared."""
    salt = salt_of(live)
    return document if not salt or salt_of(document) == salt else kept(document, salt)


def kept(document: Document, salt: str) -> Document:
    """The document of a workload, plain pod, autoscaler, policy, webhook or account, without possible secrets.

    A document that was already converted is returned unchanged. If it is nested too deeply, only the metadata remains.
    """
    if salt_of(document):
        return document
    hide = _hider(salt)
    metadata = {key: each for key, each in mapping_in(document, "metadata").items() if key in _METADATA}
    annotations = _annotations(mapping_in(document, "metadata", "annotations"), hide)
    last = last_applied(document)
    if last is not None:
        # The applied manifest has no salt.
        found = kept({key: each for key, each in last.items() if key != "status"}, salt)
        own = {key: each for key, each in found["metadata"]["annotations"].items() if key != SALT}
        last = {**found, "metadata": {**found["metadata"], "annotations": own}}
        annotations[LAST_APPLIED] = _encoded(last).decode()
    result: Document = {
        **{key: document[key] for key in ("apiVersion", "kind") if key in document},
        "metadata": {**metadata, "annotations": {**annotations, SALT: salt}},
    }
    if is_nested_too_deeply(document):
        return result
    if isinstance(document.get("spec"), dict):
        spec, is_pod = document["spec"], document.get("kind") == "Pod"
        result["spec"] = _hidden(spec, "spec", hide) if is_pod else _of_workload(spec, hide)
    if "webhooks" in document:
        # Everything except the addresses and CA bundles of webhooks.
        result["webhooks"] = _fields(
            document["webhooks"], lambda key, each: _leaves(each, hide) if key == "clientConfig" else each
        )
    if is_pod_owner(document) and isinstance(document.get("status"), dict):
        result["status"] = _status(document["status"])
    return result


def _fields(value: Any, made: Callable[[str, Any], Any]) -> Any:
    """Apply ``made`` to each field of a mapping, or of the mappings in a list."""
    if isinstance(value, list):
        return [_fields(each, made) for each in value]
    return {key: made(key, each) for key, each in value.items()} if isinstance(value, dict) else value


def _of_workload(value: Any, hide: Hide) -> Any:
    """Keep a workload's spec except its templates of pods and claims, which are converted."""
    return _fields(
        value,
        lambda key, each: (
            _hidden(each, key, hide)
            if key in ("template", "volumeClaimTemplates")
            else _annotations(each, hide)
            if key == "annotations"
            else _of_workload(each, hide)
        ),
    )


def _hidden(value: Any, key: str, hide: Hide) -> Any:
    """Convert a part of a template that is in the field ``key``."""
    if key in _HASHED_FIELDS and value not in (None, [], {}):
        return hide(_cleaned(container_defaults().filled({key: value})[key], key))
    if key == "annotations":
        return _annotations(value, hide)
    if isinstance(value, dict):
        return {name: each if key in _READ_MAPS else _hidden(each, name, hide) for name, each in value.items()}
    if isinstance(value, list):
        return [_hidden(each, key, hide) for each in value]
    is_shown = not isinstance(value, str) or not value or key in _fields_read() or value in _DEFAULTS
    return value if is_shown else hide(value)


def _leaves(value: Any, hide: Hide) -> Any:
    if isinstance(value, dict):
        return {key: _leaves(each, hide) for key, each in value.items()}
    if isinstance(value, list):
        return [_leaves(each, hide) for each in value]
    return hide(value) if isinstance(value, str) and value else value


def _annotations(value: Any, hide: Hide) -> Any:
    """Keep annotations that are read, and replace the others with digests."""
    if not isinstance(value, dict):
        return value
    hidden = {
        key: hide(each)
        for key, each in value.items()
        if isinstance(each, str) and each and key not in _READ_ANNOTATIONS and not key.startswith(_OF_CONTROLLERS)
    }
    return {key: hidden.get(key, each) for key, each in value.items() if key != LAST_APPLIED}


def _status(status: Document) -> Document:
    """Counts, revisions and conditions, with messages only if they say why pods are missing."""
    conditions = [
        {key: each[key] for key in _OF_CONDITIONS if key in each} | _message(each)
        for each in mappings_in(status, "conditions")
    ]
    fields = {key: each for key, each in status.items() if type(each) is int or key in _OF_STATUS}
    return {**fields, **({"conditions": conditions} if conditions else {})}


def _message(condition: Document) -> Document:
    kind, reason, message = (condition.get(key) for key in ("type", "reason", "message"))
    if not isinstance(message, str) or not is_about_missing_pods(str(kind), str(reason)):
        return {}
    return {"message": without_quotations(message)}


def _cleaned(value: Any, key: str) -> Any:
    """Remove what the API server drops."""
    if isinstance(value, list):
        return [_cleaned(each, key) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _cleaned(each, name) for name, each in value.items() if not is_missing(key, name, each)}


@cache
def _hider(salt: str) -> Hide:
    """A function that computes salted digests, once per value."""
    start, known = hashlib.sha256(salt.encode()), dict[bytes, str]()

    def hide(value: Any) -> str:
        text = _encoded(value)
        found = known.get(text)
        if found is None:
            digest = start.copy()
            digest.update(text)
            found = known[text] = f"{_DIGEST}{digest.hexdigest()[:_LENGTH]}"
        return found

    return hide


def _encoded(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), default=str).encode()


@cache
def _fields_read() -> frozenset[str]:
    """The names of the fields of pods and claims that snapshots hold."""
    found: set[str] = set(_FIELDS_READ)
    for record in (PodSpec, PersistentVolumeClaim):
        _collect(inspect.type_info(record), found)
    return frozenset(found)


def _collect(kind: inspect.Type, found: set[str]) -> None:
    if isinstance(kind, inspect.UnionType):
        for each in kind.types:
            _collect(each, found)
    elif isinstance(kind, inspect.ListType):
        _collect(kind.item_type, found)
    elif isinstance(kind, inspect.StructType):
        for field in kind.fields:
            found.add(field.encode_name)
            _collect(field.type, found)
