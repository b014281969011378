"""Computes the result of ``kubectl apply`` for an object, whether it is a change, and which fields differ.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/strategicpatch`` (``CreateThreeWayMergePatch``), including what
counts as a difference, and ``pkg/api/equality`` for equality: quantities compare by amount, and empty lists and maps
equal missing ones. Lists with merge keys, and fields with ``omitempty``, are taken from ``k8s.io/api`` v0.36.3
``core/v1/types.go``. For a workload, differences in the template are separate from the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from copy import deepcopy
from itertools import islice
from typing import Any

import msgspec

from kpreempt.admission.defaults import template_with_defaults, with_defaults
from kpreempt.analysis.check.rollout.kinds import SIZE_FIELDS
from kpreempt.analysis.check.rollout.records import is_nested_too_deeply
from kpreempt.analysis.document_reader import Document
from kpreempt.model.documents import mapping_in, mappings_in
from kpreempt.model.quantity import NANO_PER_MILLI, quantity
from kpreempt.model.workloads import TEMPLATE_HASH_LABEL

# Only the fields of the manifest remain: a volume has one source, a strategy the fields of its type.
_ONE_OF = frozenset({"volumes", "strategy"})

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_/-]+")
_NOTHING = object()
# Annotations of a template that only the cluster has were added by kubectl rollout restart and the like.
_OFTEN_ADDED = "spec.template.metadata.annotations"

# The fields that identify the elements of a list; all other lists are compared in order and as one value.
MERGE_KEYS: dict[str, tuple[str, ...]] = {
    "containers": ("name",),
    "initContainers": ("name",),
    "ephemeralContainers": ("name",),
    "volumes": ("name",),
    "env": ("name",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumeDevices": ("devicePath",),
    "imagePullSecrets": ("name",),
    "hostAliases": ("ip",),
    "topologySpreadConstraints": ("topologyKey", "whenUnsatisfiable"),
    "resourceClaims": ("name",),
    "schedulingGates": ("name",),
}
# Maps with arbitrary keys, in which an empty value is a value.
_FREE_MAP_NAMES = """
annotations labels matchLabels nodeSelector limits requests overhead volumeAttributes userAnnotations options
"""
FREE_MAPS = frozenset(_FREE_MAP_NAMES.split())
# Maps whose values are quantities, and fields that are a quantity.
QUANTITY_MAPS = frozenset({"limits", "requests", "overhead"})
QUANTITY_FIELDS = frozenset({"sizeLimit", "divisor"})

# Fields with omitempty: the API server drops them if they are zero or empty.
_NAMES = """
annotations apiVersion audience minReadySeconds paused chapAuthDiscovery chapAuthSession conditionType dnsPolicy
effect fieldPath fsType generateName group host hostIP hostIPC hostNetwork hostPID hostPort hostname
imagePullPolicy initialDelaySeconds labels level limits matchLabels medium metadata nodeName nodeSelector operator
overhead partition path periodSeconds podAffinityTerm prefix priorityClassName protocol pullPolicy readOnly
request requests resources role schedulerName scheme secretFile secretName serviceAccount serviceAccountName stdin
stdinOnce subPath subPathExpr subdomain subresource successThreshold failureThreshold terminationMessagePath
terminationMessagePolicy timeoutSeconds tty uid user userAnnotations value volumeAttributes volumeID volumeName
weight workingDir
"""
_ZERO_IS_MISSING = frozenset(_NAMES.split())
# Parents in which one of those fields has another type, without omitempty.
_EXCEPT_IN = {"readOnly": ("azureDisk", "csi"), "fsType": ("azureDisk", "csi")}


def applied(manifest: Document, live: Document, last: Document) -> Document:
    """Merge ``desired`` into ``live``, and remove what ``last`` has and ``desired`` no longer has."""
    result: Document = {}
    for key, value in live.items():
        if key in manifest:
            if manifest[key] is not None:
                result[key] = _field(key, manifest[key], value, last.get(key))
        elif last.get(key) is None:
            result[key] = deepcopy(value)
    result.update({key: deepcopy(value) for key, value in manifest.items() if key not in live and value is not None})
    return result


def _field(key: str, manifest: Any, live: Any, last: Any) -> Any:
    if isinstance(manifest, dict) and isinstance(live, dict):
        return _mapping(key, manifest, live, last)
    if isinstance(manifest, list) and isinstance(live, list):
        lasts = last if isinstance(last, list) else []
        keys, live_keys, last_keys = merge_keys(key, manifest), merge_keys(key, live), merge_keys(key, lasts)
        if not keys or live_keys is None or last_keys is None:
            return deepcopy(manifest)
        live_elements, last_elements = dict(zip(live_keys, live, strict=True)), dict(zip(last_keys, lasts, strict=True))
        merged = [
            _mapping(key, each, live_elements[name], last_elements.get(name))
            if name in live_elements
            else deepcopy(each)
            for name, each in zip(keys, manifest, strict=True)
        ]
        merged_keys = {*keys, *last_elements}
        return [*merged, *(deepcopy(live_elements[name]) for name in live_keys if name not in merged_keys)]
    return deepcopy(manifest)


def _mapping(key: str, manifest: Document, live: Document, last: Any) -> Document:
    if key in _ONE_OF:
        live = {name: value for name, value in live.items() if name in manifest}
    return applied(manifest, live, last if isinstance(last, dict) else {})


def same_template(left: Document, right: Document) -> bool:
    """Whether two templates are equal for the Deployment controller, which ignores the hash label."""
    return same(_without_hash(template_with_defaults(left)), _without_hash(template_with_defaults(right)))


def same(left: Any, right: Any, parent: str = "", key: str = "") -> bool:
    """Whether two values of the field ``key``, inside the field ``parent``, mean the same."""
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same_or_missing(left.get(each), right.get(each), key, each) for each in left.keys() | right.keys())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(same(*each) for each in zip(left, right, strict=True))
    if parent in QUANTITY_MAPS or key in QUANTITY_FIELDS:
        return bool(_amount(left) == _amount(right))
    return type(left) is type(right) and bool(left == right)


def path_differences(
    desired: Document, full: Document, live: Document, last: Document | None, path: str, key: str
) -> Iterator[str]:
    """The paths below ``path`` at which a manifest (``desired``) differs from the cluster (``live``).

    ``full`` is ``desired`` with the API's defaults, as in ``live``; ``key`` is the field that contains them. ``last``
    is the last applied manifest: fields that only it has are removed. If it is unknown (``None``), every field that
    only the cluster has counts as removed, unless it is a default.
    """
    for name, value in desired.items():
        if value is not None:
            before = last.get(name) if last is not None else None
            known = None if last is None else before if before is not None else _NOTHING
            yield from _field_differences(value, full.get(name), live.get(name), known, below(path, name), key, name)
    for name, value in live.items():
        if desired.get(name) is None and not _same_or_missing(value, full.get(name), key, name):
            field_path = below(path, name)
            is_ignored = _OFTEN_ADDED in (field_path, path)
            if name in desired or (not is_ignored if last is None else last.get(name) is not None):
                yield field_path


def _field_differences(
    desired: Any, full: Any, live: Any, before: Any, path: str, parent: str, key: str
) -> Iterator[str]:
    """``before`` is ``None`` if the last applied manifest is unknown, and ``_NOTHING`` if it lacks this field."""
    if live is None:
        if not is_missing(parent, key, desired):
            yield path
    elif isinstance(desired, dict) and isinstance(full, dict) and isinstance(live, dict):
        last = None if before is None else before if isinstance(before, dict) else {}
        yield from path_differences(desired, full, live, last, path, key)
    elif isinstance(desired, list) and isinstance(full, list) and isinstance(live, list) and key in MERGE_KEYS:
        lasts = None if before is None else before if isinstance(before, list) else []
        yield from _list_differences(desired, full, live, lasts, path, key)
    elif not _same_or_missing(full, live, parent, key):
        yield path


def _list_differences(
    desired: list[Any], full: list[Any], live: list[Any], last: list[Any] | None, path: str, key: str
) -> Iterator[str]:
    keys, live_keys, last_keys = merge_keys(key, desired), merge_keys(key, live), merge_keys(key, last or [])
    if keys is None or live_keys is None or last_keys is None:
        if not same(full, live):
            yield path
        return
    lives, lasts = dict(zip(live_keys, live, strict=True)), dict(zip(last_keys, last or [], strict=True))
    for index, name in enumerate(keys):
        element_path = f"{path}[{index}]"
        if name not in lives:
            yield element_path
        else:
            before = None if last is None else lasts.get(name, {})
            yield from path_differences(desired[index], full[index], lives[name], before, element_path, key)
    mine = set(keys)
    is_shortened = any(name not in mine and (last is None or name in lasts) for name in live_keys)
    if is_shortened or [each for each in keys if each in lives] != [each for each in live_keys if each in mine]:
        yield path


def below(path: str, key: str) -> str:
    """The path of a key; a key with dots is put in brackets so that the path stays unambiguous."""
    if not _PLAIN_KEY.fullmatch(key):
        return f'{path}["{key}"]'
    return f"{path}.{key}" if path else key


def _same_or_missing(left: Any, right: Any, parent: str, key: str) -> bool:
    if is_missing(parent, key, left) and is_missing(parent, key, right):
        return True
    if left is None or right is None:
        return False
    return same(left, right, parent, key)


def _amount(value: Any) -> Any:
    """A quantity in thousandths, rounded up as the API server does; anything else unchanged."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return value
    try:
        return -(-quantity(str(value)).nano // NANO_PER_MILLI)
    except ValueError:
        return str(value)


def _without_hash(template: Document) -> Document:
    metadata = mapping_in(template, "metadata")
    labels = mapping_in(metadata, "labels")
    if TEMPLATE_HASH_LABEL not in labels:
        return template
    remaining = {key: value for key, value in labels.items() if key != TEMPLATE_HASH_LABEL}
    return {**template, "metadata": {**metadata, "labels": remaining}}


def is_missing(parent: str, key: str, value: Any) -> bool:
    """Whether the API server drops a field with this value, inside the field ``parent``."""
    if value is None or value == []:
        return True
    if parent in FREE_MAPS or key not in _ZERO_IS_MISSING or parent in _EXCEPT_IN.get(key, ()):
        return False
    if isinstance(value, dict):
        return not value if key in FREE_MAPS else all(is_missing(key, name, each) for name, each in value.items())
    return value == "" or value is False or (type(value) is int and value == 0)


def merge_key(field: str, element: Any) -> tuple[Any, ...] | None:
    """The key of an element of the list ``field``; ``None`` if it has none."""
    fields = MERGE_KEYS.get(field)
    if fields is None or not isinstance(element, dict):
        return None
    values = tuple(element.get(each, "TCP" if each == "protocol" else None) for each in fields)
    return values if all(isinstance(each, (str, int)) for each in values) else None


def merge_keys(field: str, elements: list[Any]) -> list[tuple[Any, ...]] | None:
    """The key of each element, or ``None`` if an element has no key or two share one."""
    keys = [merge_key(field, each) for each in elements]
    known = [each for each in keys if each is not None]
    return known if len(known) == len(keys) == len(set(known)) else None


LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_FIELDS_SHOWN = 5
# Labels that the API server adds to the template of a Job.
_JOB_LABELS = ("controller-uid", "job-name", "batch.kubernetes.io/controller-uid", "batch.kubernetes.io/job-name")
_OF_CLAIM_TEMPLATES = ("apiVersion", "kind", "status")


class Differences(msgspec.Struct, frozen=True):
    """The paths that differ in the template and in the rest of the object."""

    template: list[str]
    rest: list[str]

    @property
    def fields(self) -> list[str]:
        """The first few paths."""
        return [*self.template, *self.rest][:_FIELDS_SHOWN]


def last_applied(live: Document) -> Document | None:
    """The last applied manifest of an object, or ``None`` if it has none that can be read."""
    text = mapping_in(live, "metadata", "annotations").get(LAST_APPLIED)
    if not isinstance(text, str):
        return None
    try:
        document = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return document if isinstance(document, dict) and not is_nested_too_deeply(document) else None


def is_complete(live: Document) -> bool:
    """Whether a document of the cluster is complete; a snapshot leaves out the template."""
    spec = mapping_in(live, "spec")
    return isinstance(spec.get("jobTemplate" if live.get("kind") == "CronJob" else "template"), dict)


def find_differences(document: Document, live: Document) -> Differences:
    """The differences between the manifest ``document`` and ``live``; the whole template if ``live`` lacks it."""
    desired, full = _comparable(document), _comparable(with_defaults(document))
    full_live, last = _comparable(with_defaults(live)), last_applied(live)
    last = _comparable(last) if last is not None else None
    template = ["spec.template"]
    if document["kind"] == "CronJob":
        template = []
    elif is_complete(live):
        before = None if last is None else mapping_in(last, "spec", "template")
        manifest_template, full_template, live_template = (
            mapping_in(each, "spec", "template") for each in (desired, full, full_live)
        )
        found = path_differences(manifest_template, full_template, live_template, before, "spec.template", "template")
        template = list(islice(found, _FIELDS_SHOWN))
    return Differences(template, _in_the_rest(desired, full, full_live, last or {}, is_complete=is_complete(live)))


def _in_the_rest(desired: Document, full: Document, live: Document, last: Document, *, is_complete: bool) -> list[str]:
    """Differences outside the template. Fields that only the cluster has are kept, unless they were applied before."""
    # A snapshot without the template has only these fields of a spec.
    known = None if is_complete else {"selector", SIZE_FIELDS.get(str(desired["kind"]), "")}

    def of_spec(document: Document) -> Document:
        spec = mapping_in(document, "spec")
        return {key: each for key, each in spec.items() if key != "template" and (known is None or key in known)}

    def of_metadata(document: Document) -> Document:
        metadata = mapping_in(document, "metadata")
        keys = ("labels", "annotations") if is_complete else ("labels",)
        return {key: metadata[key] for key in keys if metadata.get(key)}

    of_metadata_wanted = of_metadata(desired)
    return [
        *path_differences(of_spec(desired), of_spec(full), of_spec(live), of_spec(last), "spec", "spec"),
        *path_differences(
            *(of_metadata_wanted, of_metadata_wanted, of_metadata(live), of_metadata(last), "metadata", "metadata")
        ),
    ]


def _comparable(document: Document) -> Document:
    """A workload without the fields that only the API server sets."""
    spec: Any = document.get("spec")
    if not isinstance(spec, dict):
        return document
    spec = dict(spec)
    if document.get("kind") == "Job" and isinstance(spec.get("template"), dict):
        metadata = mapping_in(spec["template"], "metadata")
        labels = {key: value for key, value in mapping_in(metadata, "labels").items() if key not in _JOB_LABELS}
        rest = {key: each for key, each in metadata.items() if key != "labels"}
        spec["template"] = {**spec["template"], "metadata": {**rest, "labels": labels}}
    if "volumeClaimTemplates" in spec:
        spec["volumeClaimTemplates"] = [
            {key: value for key, value in each.items() if key not in _OF_CLAIM_TEMPLATES}
            for each in mappings_in(spec, "volumeClaimTemplates")
        ]
    return {**document, "spec": spec}
