"""Find fields and resource names in a manifest that are unknown to the API server, which rejects the object.

``kubectl apply`` requests strict decoding (``fieldValidation=Strict``): a field that the object's type does not have in
the server's version is an error, and case counts. The fields are listed in ``api_types.json``, which
``tools/api_types.py`` writes. Like the decoder (``sigs.k8s.io/json``), this skips the values of ``RawExtension`` and
other types that decode themselves. Custom resources and the types of values are not checked.

Resource names follow ``validateContainerResourceName`` and related functions in ``k8s.io/kubernetes`` v1.36.3
``pkg/apis/core/validation/validation.go``, which are the same from 1.29 to 1.38.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pkgutil import get_data
from typing import Any, NamedTuple

import msgspec

from kpreempt.errors import nearest
from kpreempt.model.labels import is_label_key

Document = Mapping[str, Any]
Path = tuple[str | int, ...]

_LONGEST_NAME = 80
# SOPS adds this key to encrypted files, and removes it on decryption.
_ENCRYPTED = frozenset({"core.v1.Secret", "core.v1.ConfigMap"})
_PLAIN_KEY = re.compile(r"[\w-]+")
_HUGE_PAGES = "hugepages-"
_REQUESTS = "requests."
_NATIVE = "kubernetes.io/"
_COMPUTE = frozenset({"cpu", "memory", "ephemeral-storage"})
_POD_LEVEL = frozenset({"cpu", "memory"})
_OF_REQUESTS = frozenset(f"{verb}.{name}" for verb in ("requests", "limits") for name in _COMPUTE)
_QUOTA = frozenset(
    {
        *_COMPUTE,
        *_OF_REQUESTS,
        *("requests.storage", "pods", "resourcequotas", "services", "replicationcontrollers", "secrets"),
        *("persistentvolumeclaims", "configmaps", "services.nodeports", "services.loadbalancers"),
    }
)
_STANDARD = frozenset({*_QUOTA, "storage"})
_STORAGE = frozenset({"storage"})
_LIMIT_TYPES = frozenset({"Container", "Pod", "PersistentVolumeClaim"})
# PodLevelResources is on by default from this version; before it, the API server drops pod-level requests.
_POD_LEVEL_FROM = 34


class ApiTypes(msgspec.Struct, frozen=True):
    """The kinds of the API and the fields of their types, as written by ``tools/api_types.py``."""

    minors: tuple[int, int]
    kinds: Mapping[str, str]
    types: Mapping[str, Mapping[str, str]]


class UnknownName(msgspec.Struct, frozen=True):
    """A field, or another name (``what``), that an object's type does not have.

    ``path`` is its path: keys and indices. ``known`` are the valid names; ``minors`` are the minor versions that have
    it, if any, as ``33-``, ``-30`` or ``33-35``.
    """

    what: str
    path: Path
    known: Collection[str] = ()
    minors: str = ""
    value: str = ""

    def __str__(self) -> str:
        """``unknown field spec.containers[0].resuorces (did you mean resources?)``."""
        value = f' "{_shortened(self.value)}"' if self.value else ""
        hint = self._hint()
        return f"unknown {self.what} {path_text(self.path)}{value}{f' ({hint})' if hint else ''}"

    def _hint(self) -> str:
        if self.minors:
            first, _, last = self.minors.partition("-")
            since, until = f"from 1.{first} on" if first else "", f"up to 1.{last}" if last else ""
            return f"known {' '.join(filter(None, (since, until)))}"
        word = self.value or str(self.path[-1])
        near = nearest(word[:_LONGEST_NAME], self.known)
        # A user who writes gpu does not mean cpu.
        is_near = near in self.known and (self.what != "resource" or near[0] == word[:1].lower())
        return f"did you mean {near}?" if is_near else ""


def unknown_names(document: Document, minor: int | None = None) -> Iterator[UnknownName]:
    """Yield unknown names in an object for the API server of version 1.``minor``, in document order.

    Without ``minor``, and for versions that the table does not cover, the fields of all versions are known. Kinds that
    are not built in yield nothing.
    """
    api = api_types()
    entry = api.kinds.get(f"{document.get('apiVersion')} {document.get('kind')}")
    if entry is None:
        return
    kind, _, minors = entry.partition(" ")
    if kind in _ENCRYPTED and isinstance(document.get("sops"), dict):
        document = {key: value for key, value in document.items() if key != "sops"}
    if minor is not None and not (api.minors[0] <= minor <= api.minors[1] and _is_within(minors, minor)):
        minor = None
    waiting: list[tuple[Path, str, Any]] = [((), kind, document)]
    while waiting:
        path, type_name, value = waiting.pop()
        inner: list[tuple[Path, str, Any]] = []
        # By key or index; a value of the wrong type has no children.
        parts: Iterable[tuple[str | int, Any]] = ()
        if type_name.startswith("[]"):
            parts = enumerate(value) if isinstance(value, list) else ()
        elif isinstance(value, dict) and (type_name.startswith("{}") or type_name in api.types):
            parts = value.items()
        for key, each in parts:
            # The type of the field, empty if it is unknown, and the minor versions that have it.
            found, minors = type_name[2:], ""
            if not type_name.startswith(("[]", "{}")):
                found, _, minors = api.types[type_name].get(str(key), "").partition(" ")
            if not found or (minor is not None and not _is_within(minors, minor)):
                yield UnknownName("field", (*path, key), api.types[type_name], minors)
            elif isinstance(each, (dict, list)):
                inner.append(((*path, key), found, each))
        for keys, known, is_known, since in _RESOURCE_MAPS.get(type_name, ()):
            if minor is None or minor >= since:
                yield from _unknown_in(value, keys, path, known, is_known)
        if (check := _RESOURCE_CHECKS.get(type_name)) and isinstance(value, dict):
            yield from check(value, path)
        waiting += reversed(inner)


def _is_within(minors: str, minor: int) -> bool:
    """Return whether ``33-``, ``-30`` or ``33-35`` contains the minor version; an empty string contains all."""
    first, _, last = minors.partition("-")
    return int(first or minor) <= minor <= int(last or minor)


def path_text(path: Path) -> str:
    """Format as ``spec.containers[0].resuorces``; other keys are in brackets: ``limits[nvidia.com/gpu]``."""
    text = ""
    for part in path:
        is_plain = isinstance(part, str) and _PLAIN_KEY.fullmatch(part)
        name = _shortened(str(part))
        text += f".{name}" if is_plain else f"[{name}]"
    return text.removeprefix(".")


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAME else f"{name[: _LONGEST_NAME - 1]}…"


@cache
def api_types() -> ApiTypes:
    """Load the table when a manifest is first checked."""
    data = get_data(__package__, "api_types.json")
    assert data is not None
    return msgspec.json.decode(data, type=ApiTypes)


def _is_container_resource(name: str) -> bool:
    if "/" not in name:
        return is_label_key(name) and (name in _COMPUTE or name.startswith(_HUGE_PAGES))
    is_extended = not name.startswith(_REQUESTS) and is_label_key(_REQUESTS + name)
    return is_label_key(name) and (_NATIVE in name or is_extended)


def _is_resource_of(standard: Collection[str], name: str) -> bool:
    is_standard = name in standard or name.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES))
    return is_label_key(name) and ("/" in name or is_standard)


def _at(value: Any, keys: Iterable[str]) -> Mapping[str, Any]:
    """Return the map at the path ``keys``, or an empty one."""
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value if isinstance(value, dict) else {}


def _unknown_in(
    value: Any, keys: tuple[str, ...], path: Path, known: Collection[str], is_known: Callable[[str], bool]
) -> Iterator[UnknownName]:
    """Yield unknown resources in the map at ``keys`` below a value with the given ``path``."""
    for name in _at(value, keys):
        if not is_known(name):
            yield UnknownName("resource", (*path, *keys, name), known)


def _in_limit_range(item: Any, path: Path) -> Iterator[UnknownName]:
    kind = item.get("type")
    if isinstance(kind, str) and kind and kind not in _LIMIT_TYPES and not ("/" in kind and is_label_key(kind)):
        yield UnknownName("limit type", (*path, "type"), _LIMIT_TYPES, value=kind)
    of_containers = kind in ("Container", "Pod")
    known = _COMPUTE if of_containers else _STANDARD
    is_known = _is_container_resource if of_containers else partial(_is_resource_of, _STANDARD)
    for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        yield from _unknown_in(item, (key,), path, known, is_known)


def _in_claim(claim: Any, path: Path) -> Iterator[UnknownName]:
    """Yield unknown resources of a claim, which may request others in addition to ``storage``, but not instead of it.

    Before 1.36 the API server does not check the claim templates of a StatefulSet.
    """
    keys = ("spec", "resources", "requests")
    if "volumeClaimTemplates" not in path and "storage" not in _at(claim, keys):
        yield from _unknown_in(claim, keys, path, _STORAGE, _STORAGE.__contains__)


_RESOURCE_CHECKS: Mapping[str, Callable[[Any, Path], Iterator[UnknownName]]] = {
    "core.v1.LimitRangeItem": _in_limit_range,
    "core.v1.PersistentVolumeClaim": _in_claim,
    "core.v1.PersistentVolumeClaimTemplate": _in_claim,
}


class _ResourceMap(NamedTuple):
    """A map of resources in a type: its path, its valid names, and the first version that has it."""

    keys: tuple[str, ...]
    known: Collection[str]
    is_known: Callable[[str], bool]
    since: int = 0


_BOTH = (("resources", "limits"), ("resources", "requests"))
_RESOURCE_MAPS: Mapping[str, Sequence[_ResourceMap]] = {
    "core.v1.Container": [_ResourceMap(keys, _COMPUTE, _is_container_resource) for keys in _BOTH],
    "core.v1.PodSpec": [
        _ResourceMap(("overhead",), _COMPUTE, _is_container_resource),
        *(
            _ResourceMap(
                keys,
                _POD_LEVEL,
                lambda name: is_label_key(name) and (name in _POD_LEVEL or name.startswith(_HUGE_PAGES)),
                since=_POD_LEVEL_FROM,
            )
            for keys in _BOTH
        ),
    ],
    "node.v1.Overhead": [_ResourceMap(("podFixed",), _COMPUTE, _is_container_resource)],
    "core.v1.ResourceQuotaSpec": [_ResourceMap(("hard",), _QUOTA, partial(_is_resource_of, _QUOTA))],
    "core.v1.PersistentVolumeSpec": [_ResourceMap(("capacity",), _STORAGE, _STORAGE.__contains__)],
}
