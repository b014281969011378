"""What an API server serves, as it tells everybody who is let in: groups, their versions, and the resources of these.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/apis/meta/v1/types.go`` (``APIGroupList``, ``APIResourceList``).
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.failures import ClusterError

_T = TypeVar("_T")


class Resource(msgspec.Struct, frozen=True):
    """A resource of a group and version: its name in paths, its kind, and whether its objects are in namespaces."""

    name: str
    kind: str
    namespaced: bool = False


class _Version(msgspec.Struct, frozen=True, rename="camel"):
    group_version: str


class _Group(msgspec.Struct, frozen=True):
    name: str
    versions: list[_Version]


class _Groups(msgspec.Struct, frozen=True):
    groups: list[_Group]


class _Resources(msgspec.Struct, frozen=True):
    resources: list[Resource]


def is_not_served(api: Api, group: str, kind: str) -> bool:
    """Whether the server says that it serves the kind in no version, so that there can be no objects of it.

    False where it does not say. Raises nothing.
    """
    groups = _answer(api, "/apis", _Groups)
    if groups is None:
        return False
    versions = [version.group_version for each in groups.groups if each.name == group for version in each.versions]
    served = [resources_of(api, version) for version in versions]
    return all(each is not None and all(resource.kind != kind for resource in each) for each in served)


def resources_of(api: Api, api_version: str) -> list[Resource] | None:
    """The resources of a group and version, without what is below one (``pods/log``); ``None`` where it is not told."""
    path = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    found = _answer(api, path, _Resources)
    return None if found is None else [each for each in found.resources if "/" not in each.name]


def _answer(api: Api, path: str, kind: type[_T]) -> _T | None:
    try:
        return msgspec.json.decode(api.get(path), type=kind)
    except (ClusterError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
