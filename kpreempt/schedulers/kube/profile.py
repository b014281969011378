"""Profiles: which plugins run for pods of a scheduler name, at which extension points, in which order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME
from kpreempt.schedulers.kube.framework.features import FeatureGates
from kpreempt.schedulers.kube.framework.interface import (
    DEFAULT_PARALLELISM,
    FilterPlugin,
    Handle,
    Plugin,
    PluginArgs,
    PostFilterPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from kpreempt.schedulers.kube.framework.runner import ProfilePlugins
from kpreempt.schedulers.kube.registry import DEFAULT_PLUGINS, REGISTRY, EnabledPlugin

EXTENSION_POINTS = ("preEnqueue", "preFilter", "filter", "postFilter", "preScore", "score")


class PointConfig(msgspec.Struct, frozen=True):
    """What a configuration says about one extension point; ``disabled`` may hold ``*``."""

    enabled: Sequence[EnabledPlugin] = ()
    disabled: frozenset[str] = frozenset()


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile, with its defaults merged in.

    ``plugins`` are enabled at every point that they implement; ``points`` adds to that and takes away from it.
    ``has_extenders`` says that extenders filter or score nodes, too; ``parallelism`` is the scheduler's number of
    workers.
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    plugins: Sequence[EnabledPlugin] = DEFAULT_PLUGINS
    points: Mapping[str, PointConfig] = {}
    plugin_args: Mapping[str, PluginArgs] = {}
    percentage_of_nodes_to_score: int = 0
    has_extenders: bool = False
    parallelism: int = DEFAULT_PARALLELISM


def default_profile(features: FeatureGates) -> Profile:
    """The profile that a kube-scheduler without configuration runs, under these gates."""
    return Profile(plugins=default_plugins(features))


def default_plugins(features: FeatureGates) -> tuple[EnabledPlugin, ...]:
    """The plugins that are enabled by default under these gates."""
    gated = {
        "DynamicResources": features.dynamic_resource_allocation,
        "NodeDeclaredFeatures": features.node_declared_features,
    }
    return tuple(plugin for plugin in DEFAULT_PLUGINS if gated.get(plugin.name, True))


def build_plugins(profile: Profile, handle: Handle) -> ProfilePlugins:
    """Make the profile's plugins and put them in order at each extension point.

    A point's own plugins that are also enabled everywhere come first, then those enabled everywhere, then the rest
    (``expandMultiPointPlugins``, ``framework/runtime/framework.go``, v1.36.3).
    """
    names = dict.fromkeys(plugin.name for plugin in profile.plugins)
    for point in profile.points.values():
        names |= dict.fromkeys(plugin.name for plugin in point.enabled)
    made = {
        name: REGISTRY[name].factory(profile.plugin_args.get(name) or REGISTRY[name].default_args(), handle)
        for name in names
        if name in REGISTRY
    }
    plugins = ProfilePlugins()
    plugins.pre_enqueues = [
        p for p in _at_point(profile, "preEnqueue", made, PreEnqueuePlugin) if isinstance(p, PreEnqueuePlugin)
    ]
    plugins.pre_filters = [
        p for p in _at_point(profile, "preFilter", made, PreFilterPlugin) if isinstance(p, PreFilterPlugin)
    ]
    plugins.filters = [p for p in _at_point(profile, "filter", made, FilterPlugin) if isinstance(p, FilterPlugin)]
    plugins.post_filters = [
        p for p in _at_point(profile, "postFilter", made, PostFilterPlugin) if isinstance(p, PostFilterPlugin)
    ]
    plugins.pre_scores = [
        p for p in _at_point(profile, "preScore", made, PreScorePlugin) if isinstance(p, PreScorePlugin)
    ]
    plugins.scores = [p for p in _at_point(profile, "score", made, ScorePlugin) if isinstance(p, ScorePlugin)]
    plugins.weights = _weights(profile)
    return plugins


def _at_point(profile: Profile, point: str, made: Mapping[str, Plugin], kind: type[Plugin]) -> list[Plugin]:
    config = profile.points.get(point, PointConfig())
    own = [plugin.name for plugin in config.enabled]
    everywhere: list[str] = []
    if "*" not in config.disabled:
        everywhere = [
            plugin.name
            for plugin in profile.plugins
            if plugin.name not in config.disabled and isinstance(made.get(plugin.name), kind)
        ]
    overridden = [name for name in own if name in everywhere]
    rest = [name for name in own if name not in everywhere]
    order = [*overridden, *(name for name in everywhere if name not in own), *rest]
    return [made[name] for name in order if name in made]


def _weights(profile: Profile) -> dict[str, int]:
    weights = {plugin.name: plugin.weight for plugin in profile.plugins}
    score = profile.points.get("score", PointConfig())
    return weights | {plugin.name: plugin.weight for plugin in score.enabled}
