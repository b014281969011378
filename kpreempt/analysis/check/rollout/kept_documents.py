"""Documents of workloads as dumps of kpreempt's keep them: enough to compare a manifest with, and nothing secret.

What the scheduler and controllers read stays. Every other text becomes a digest, and so do environments, commands,
arguments and headers, each as a whole: whoever has the file can tell that one differs, and can test a guess, but not
read it. Digests are salted with what is in no other dump. A manifest is compared by being made such a document, too
(``alike``), so that nothing that compares need know of digests.
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
    CLUSTER_KINDS,
    MUTATING,
    POD_OWNERS,
    cluster_kind_of,
    is_mutating,
    is_pod_owner,
)
from kpreempt.analysis.check.rollout.records import is_nested_too_deeply
from kpreempt.analysis.document_reader import Document, mapping_in, mappings_in
from kpreempt.model.meta import ObjectMeta, controller_of
from kpreempt.model.pod import PodAnnotations, PodSpec
from kpreempt.model.storage import PersistentVolumeClaim

SALT = "kpreempt.io/salt"
_DIGEST = "sha256:"
_LENGTH = 32
# What is hidden as a whole, so that a single value cannot be guessed without the rest.
_WHOLE = frozenset(
    {"env", "envFrom", "command", "args", "httpHeaders", "imagePullSecrets", "volumeAttributes", "options"}
)
# Maps whose values schedulers and controllers read.
_READ_MAPS = FREE_MAPS - {"annotations", "volumeAttributes", "userAnnotations", "options"}
# What defaults consist of, or are told by, and amounts.
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
# Of pods, and the one by which claims say their class.
_READ_ANNOTATIONS = frozenset(
    ("volume.beta.kubernetes.io/storage-class", *(each.encode_name for each in msgspec.structs.fields(PodAnnotations)))
)
_METADATA = frozenset(each.encode_name for each in msgspec.structs.fields(ObjectMeta))

Hide = Callable[[Any], str]


def is_kept(kind: str, record: Any) -> bool:
    """Whether the document of an object belongs into a dump: of one that a manifest may be compared with."""
    return kind in POD_OWNERS or kind in (KIND, *MUTATING) or (kind == "Pod" and controller_of(record.metadata) is None)


def is_compared(document: Document) -> bool:
    """Whether it is one of those, and of no other group."""
    of_group = is_pod_owner(document) or is_autoscaler(document) or is_mutating(document)
    return of_group or cluster_kind_of(document) is CLUSTER_KINDS["Pod"]


def salt_of(document: Document) -> str:
    """The salt of a document of a dump of kpreempt's; empty for one that has all as it was."""
    salt = mapping_in(document, "metadata", "annotations").get(SALT)
    return salt if isinstance(salt, str) else ""


def salt_for(documents: Iterable[Document]) -> str:
    """A salt that nobody knows who does not know the documents; the same for the same ones."""
    digest = hashlib.sha256()
    for each in documents:
        if not is_nested_too_deeply(each):
            digest.update(msgspec.json.encode(each))
    return digest.hexdigest()[:_LENGTH]


def alike(document: Document, live: Document) -> Document:
    """The manifest as the cluster's document ``live`` is kept, so that the two can be compared."""
    salt = salt_of(live)
    return document if not salt or salt_of(document) == salt else kept(document, salt)


def kept(document: Document, salt: str) -> Document:
    """The document of a workload, a plain pod, an autoscaler or a webhook without what may be secret.

    One that was kept before stays as it is. Of one that is nested too deeply only the metadata is left.
    """
    if salt_of(document):
        return document
    hide = _hider(salt)
    metadata = {key: each for key, each in mapping_in(document, "metadata").items() if key in _METADATA}
    annotations = _annotations(mapping_in(document, "metadata", "annotations"), hide)
    last = last_applied(document)
    if last is not None:
        # Who compares looks for no salt in the manifest that was applied.
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
        # All but where they are, and whom they trust.
        result["webhooks"] = _fields(
            document["webhooks"], lambda key, each: _leaves(each, hide) if key == "clientConfig" else each
        )
    if is_pod_owner(document) and isinstance(document.get("status"), dict):
        result["status"] = _status(document["status"])
    return result


def _fields(value: Any, made: Callable[[str, Any], Any]) -> Any:
    """A mapping with what is made of each of its fields, a list with what is made of its mappings."""
    if isinstance(value, list):
        return [_fields(each, made) for each in value]
    return {key: made(key, each) for key, each in value.items()} if isinstance(value, dict) else value


def _of_workload(value: Any, hide: Hide) -> Any:
    """All of a workload's spec stays but its templates, which are those of pods and claims."""
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
    """A part of a template, which is in the field ``key``."""
    if key in _WHOLE and value not in (None, [], {}):
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
    """Those that are read stay; of the others it can be told whether they differ."""
    if not isinstance(value, dict):
        return value
    hidden = {
        key: hide(each)
        for key, each in value.items()
        if isinstance(each, str) and each and key not in _READ_ANNOTATIONS and not key.startswith(_OF_CONTROLLERS)
    }
    return {key: hidden.get(key, each) for key, each in value.items() if key != LAST_APPLIED}


def _status(status: Document) -> Document:
    """Counts and revisions, and which conditions there are."""
    conditions = [{key: each.get(key) for key in ("type", "status")} for each in mappings_in(status, "conditions")]
    told = {key: each for key, each in status.items() if type(each) is int or key in _OF_STATUS}
    return {**told, **({"conditions": conditions} if conditions else {})}


def _cleaned(value: Any, key: str) -> Any:
    """Without what the API server does not keep."""
    if isinstance(value, list):
        return [_cleaned(each, key) for each in value]
    if not isinstance(value, dict):
        return value
    return {name: _cleaned(each, name) for name, each in value.items() if not is_missing(key, name, each)}


@cache
def _hider(salt: str) -> Hide:
    """Digests with a salt, each value looked at once."""
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
    """The names of the fields of a pod, or of a claim, that a snapshot has records of."""
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
