"""Find names that the API server does not know: fields, resources, and types of limits.

Problems with fields come from ``schema``, which decodes objects; here are their texts with hints. Resource names follow
``validateContainerResourceName`` and related functions in ``k8s.io/kubernetes`` v1.36.3
``pkg/apis/core/validation/validation.go``, which are the same from 1.29 to 1.38.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

from kpreempt.admission.validation.problems import Problem
from kpreempt.errors import nearest
from kpreempt.model.documents import LONGEST_NAME, Path, mapping_in, path_text, shortened
from kpreempt.model.labels import is_label_key

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


class DecodingProblem(Problem):
    """A problem whose message has the path in it, as those of the API server's decoder have."""

    __slots__ = ()

    def __str__(self) -> str:
        """``unknown field spec.containers[0].resuorces (did you mean resources?)``."""
        return self.message


def unknown(what: str, path: Path, known: Collection[str] = (), *, minors: str = "", value: str = "") -> Problem:
    """Return the problem that an object's type does not have a field, or another name (``what``).

    ``known`` are the valid names; ``minors`` are the minor versions that have it, if any, as ``33-``, ``-30`` or
    ``33-35``. ``value`` is the name if it is not the last part of the path.
    """
    hint = _versions(minors) if minors else _similar(what, value or str(path[-1]), known)
    shown = f' "{shortened(value)}"' if value else ""
    return DecodingProblem(path, f"unknown {what} {path_text(path)}{shown}{f' ({hint})' if hint else ''}")


def _versions(minors: str) -> str:
    first, _, last = minors.partition("-")
    since, until = f"from 1.{first} on" if first else "", f"up to 1.{last}" if last else ""
    return f"known {' '.join(filter(None, (since, until)))}"


def _similar(what: str, name: str, known: Collection[str]) -> str:
    near = nearest(name[:LONGEST_NAME], known)
    # A user who writes gpu does not mean cpu.
    is_near = near in known and (what != "resource" or near[0] == name[:1].lower())
    return f"did you mean {near}?" if is_near else ""


def unknown_resources(type_name: str, value: Any, path: Path, minor: int | None) -> Iterator[Problem]:
    """Yield unknown resources in a decoded value of a type, but not in the types within it."""
    for keys, known, is_known, since in _RESOURCE_MAPS.get(type_name, ()):
        if minor is None or minor >= since:
            yield from _unknown_in(value, keys, path, known, is_known)
    if check := _RESOURCE_CHECKS.get(type_name):
        yield from check(value, path)


def _is_container_resource(name: str) -> bool:
    if "/" not in name:
        return is_label_key(name) and (name in _COMPUTE or name.startswith(_HUGE_PAGES))
    is_extended = not name.startswith(_REQUESTS) and is_label_key(_REQUESTS + name)
    return is_label_key(name) and (_NATIVE in name or is_extended)


def _is_resource_of(standard: Collection[str], name: str) -> bool:
    is_standard = name in standard or name.startswith((_HUGE_PAGES, _REQUESTS + _HUGE_PAGES))
    return is_label_key(name) and ("/" in name or is_standard)


def _unknown_in(
    value: Any, keys: tuple[str, ...], path: Path, known: Collection[str], is_known: Callable[[str], bool]
) -> Iterator[Problem]:
    """Yield unknown resources in the map at ``keys`` below a value with the given ``path``."""
    for name in mapping_in(value, *keys):
        if not is_known(name):
            yield unknown("resource", (*path, *keys, name), known)


def _in_limit_range(item: Any, path: Path) -> Iterator[Problem]:
    kind = item.get("type")
    if isinstance(kind, str) and kind and kind not in _LIMIT_TYPES and not ("/" in kind and is_label_key(kind)):
        yield unknown("limit type", (*path, "type"), _LIMIT_TYPES, value=kind)
    of_containers = kind in ("Container", "Pod")
    known = _COMPUTE if of_containers else _STANDARD
    is_known = _is_container_resource if of_containers else partial(_is_resource_of, _STANDARD)
    for key in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        yield from _unknown_in(item, (key,), path, known, is_known)


def _in_claim(claim: Any, path: Path) -> Iterator[Problem]:
    """Yield unknown resources of a claim, which may request others in addition to ``storage``, but not instead of it.

    Before 1.36 the API server does not check the claim templates of a StatefulSet.
    """
    keys = ("spec", "resources", "requests")
    if "volumeClaimTemplates" not in path and "storage" not in mapping_in(claim, *keys):
        yield from _unknown_in(claim, keys, path, _STORAGE, _STORAGE.__contains__)


_RESOURCE_CHECKS: Mapping[str, Callable[[Any, Path], Iterator[Problem]]] = {
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
