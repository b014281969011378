"""Which plugins of a profile exist and where they may be enabled (``framework/runtime/framework.go``, v1.36.3)."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from typing import Any

from kpreempt.errors import ConfigurationError
from kpreempt.model.quantity import MAX_INT64, wrap_int64
from kpreempt.schedulers.kube.configuration.defaults import ALL
from kpreempt.schedulers.kube.configuration.schema import EXTENSION_POINTS, MULTI_POINT

_MAX_SCORE = 100

Plugins = Mapping[str, Mapping[str, Sequence[Mapping[str, Any]]]]
Points = Mapping[str, frozenset[str]]


def check_plugins(plugins: Plugins, scheduler_name: str, points: Points, elsewhere: Container[str] = ()) -> None:
    """Check where a profile's plugins are enabled; ``points`` are the extension points that each implements.

    Plugins that are not among those are assumed to be compiled in, and to implement what they are enabled for, but for
    those that are there ``elsewhere``, in other versions only. Raises ``ConfigurationError`` for what the framework
    refuses.
    """
    for point, interface in EXTENSION_POINTS.items():
        _check_own(plugins[point]["enabled"], point, interface, points, elsewhere)
    enabled = {
        point: [plugin["name"] for plugin in plugins[point]["enabled"]]
        + _expanded(plugins, point, interface, points, elsewhere)
        for point, interface in EXTENSION_POINTS.items()
    }
    for_profile = f'for profile with scheduler name "{scheduler_name}"'
    may_be_more = any(plugin["name"] not in points for plugin in plugins[MULTI_POINT]["enabled"])
    sorters = len(enabled["queueSort"])
    if sorters > 1 or (sorters == 0 and not may_be_more):
        raise ConfigurationError(f"only one queue sort plugin required {for_profile}, but got {sorters}")
    if not enabled["bind"] and not may_be_more:
        raise ConfigurationError(f"at least one bind plugin is needed {for_profile}")
    if len(enabled["placementGenerate"]) > 1:
        raise ConfigurationError(f"at most one placement generate plugin is allowed {for_profile}")
    for point, kind in (("score", "score"), ("placementScore", "placement score")):
        _check_weights([*plugins[point]["enabled"], *plugins[MULTI_POINT]["enabled"]], point, kind, points)


def _check_own(
    enabled: Sequence[Mapping[str, Any]], point: str, interface: str, points: Points, elsewhere: Container[str]
) -> None:
    seen = set()
    for plugin in enabled:
        name = plugin["name"]
        _check_exists(name, interface, elsewhere)
        if name in points and point not in points[name]:
            raise ConfigurationError(f'plugin "{name}" does not extend {interface} plugin')
        if name in seen:
            raise _registered_twice(name, interface)
        seen.add(name)


def _expanded(plugins: Plugins, point: str, interface: str, points: Points, elsewhere: Container[str]) -> list[str]:
    """The plugins that multiPoint adds to those that are enabled at the point itself."""
    own = {plugin["name"] for plugin in plugins[point]["enabled"]}
    disabled = {plugin["name"] for plugin in plugins[point]["disabled"]}
    added: list[str] = []
    if ALL in disabled:
        return added
    for plugin in plugins[MULTI_POINT]["enabled"]:
        name = plugin["name"]
        _check_exists(name, interface, elsewhere)
        if point not in points.get(name, ()) or name in disabled or name in own:
            continue
        if name in added:
            raise _registered_twice(name, interface)
        added.append(name)
    return added


def _check_exists(name: str, interface: str, elsewhere: Container[str]) -> None:
    if not name or name in elsewhere:
        raise ConfigurationError(f'{interface} "{name}" does not exist')


def _registered_twice(name: str, interface: str) -> ConfigurationError:
    return ConfigurationError(f'plugin "{name}" already registered as "{interface}"')


def _check_weights(enabled: Sequence[Mapping[str, Any]], point: str, kind: str, points: Points) -> None:
    """The sum of all scores must fit 64 bits; upstream's own check wraps around where weights are negative."""
    total = 0
    seen = set()
    for plugin in enabled:
        name = plugin["name"]
        if name in seen or point not in points.get(name, ()):
            continue
        seen.add(name)
        highest = (plugin["weight"] or 1) * _MAX_SCORE
        if highest > wrap_int64(MAX_INT64 - total):
            raise ConfigurationError(f"{kind} plugins: total score of Score plugins could overflow")
        total = wrap_int64(total + highest)
