"""Profiles: the plugins that run for a scheduler name, their extension points and their order.

``queue_rules`` follows ``pkg/scheduler/scheduler.go`` (``New``, ``buildQueueingHintMap``),
``backend/queue/scheduling_queue.go`` (``runPreEnqueuePlugins``) and ``framework/runtime/framework.go``
(``fillEnqueueExtensions``) of v1.36.3. There, a Go plugin that fails to compare two pods crashes the scheduler; here,
it ends the query with an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.errors import ConfigurationError, PluginFailedError
from kpreempt.model.frozen import frozen
from kpreempt.model.pod import DEFAULT_SCHEDULER_NAME, Pod
from kpreempt.phases import Phases
from kpreempt.schedulers.interface import Less, QueuedPodInfo, QueueRules, WaitingPod
from kpreempt.schedulers.kube.framework.in_tree import Registration
from kpreempt.schedulers.kube.framework.interface import (
    DEFAULT_PARALLELISM,
    EXTENSION_POINTS,
    FrameworkError,
    Handle,
    Plugin,
    PluginError,
)
from kpreempt.schedulers.kube.framework.out_of_tree import OutOfTreePlugin, attributed_to
from kpreempt.schedulers.kube.framework.runner import Framework, ProfilePlugins
from kpreempt.schedulers.kube.plugin_table import (
    REGISTRY,
    EnabledPlugin,
    Registry,
    default_plugins,
    plugins_elsewhere,
    plugins_in_tree,
)
from kpreempt.schedulers.kube.versions import Behavior, behavior

# The extension points of each in-tree plugin, including plugins of other versions.
IN_TREE = plugins_elsewhere() | plugins_in_tree()


def out_of_tree_names(names: Iterable[str], registry: Registry) -> dict[str, type[Plugin]]:
    """Return the classes of the out-of-tree plugins among ``names``, each once, in order."""
    found = {name: registry[name].plugin for name in names if name in registry}
    return {name: plugin for name, plugin in found.items() if plugin is not None}


class PointConfig(msgspec.Struct, frozen=True):
    """One extension point in a configuration; ``disabled`` may contain ``*``."""

    enabled: Sequence[EnabledPlugin] = ()
    disabled: frozenset[str] = frozenset()


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One profile, with its defaults merged in.

    ``plugins`` are enabled at every point that they implement; ``points`` adds to and removes from these.
    ``has_extenders`` means that extenders also filter or score nodes; ``parallelism`` is the scheduler's number of
    workers.
    """

    scheduler_name: str = DEFAULT_SCHEDULER_NAME
    plugins: Sequence[EnabledPlugin] = default_plugins(behavior())
    points: Mapping[str, PointConfig] = {}
    plugin_args: Mapping[str, Any] = {}
    percentage_of_nodes_to_score: int = 0
    has_extenders: bool = False
    parallelism: int = DEFAULT_PARALLELISM

    @property
    def enabled_names(self) -> list[str]:
        """Return the plugins that are enabled at one or more points, each once."""
        at_points = (plugin.name for point in self.points.values() for plugin in point.enabled)
        return list(dict.fromkeys([*(plugin.name for plugin in self.plugins), *at_points]))


def default_profile(facts: Behavior) -> Profile:
    """Return the profile of a kube-scheduler without a configuration."""
    return Profile(plugins=default_plugins(facts))


class PluginMaker:
    """Creates the plugins of a profile for a series of clusters; their points and order stay the same."""

    def __init__(self, profile: Profile, behavior: Behavior, registry: Registry = REGISTRY) -> None:
        self._profile = profile
        self._registrations = {name: registry[name] for name in profile.enabled_names if name in registry}
        self._args = {
            name: profile.plugin_args.get(name) or each.default_args({}, behavior)
            for name, each in self._registrations.items()
            if each.plugin is None
        }
        self._names_at = {
            point: [
                name
                for name in plugins_at(profile, point, registry)
                # For an out-of-tree plugin, its stand-in knows.
                if (each := self._registrations.get(name)) is not None
                and (each.plugin is not None or point in each.is_modeled)
            ]
            for point in EXTENSION_POINTS
        }
        self._weights = weights_of(profile)

    def make(self, handle: Handle) -> ProfilePlugins:
        """Create the plugins and sort them by extension point.

        Raises ``ConfigurationError`` if an out-of-tree plugin cannot be created.
        """
        made = {name: self._made(name, each, handle) for name, each in self._registrations.items()}

        def at(point: str) -> list[Any]:
            return [made[name] for name in self._names_at[point]]

        return ProfilePlugins(
            queue_sorts=at("queueSort"),
            pre_enqueues=at("preEnqueue"),
            pre_filters=at("preFilter"),
            filters=at("filter"),
            post_filters=at("postFilter"),
            pre_scores=at("preScore"),
            scores=at("score"),
            weights=self._weights,
        )

    def _made(self, name: str, registration: Registration, handle: Handle) -> Plugin:
        if registration.plugin is None:
            return registration.factory(self._args[name], handle)
        try:
            with attributed_to(name):
                args = self._profile.plugin_args.get(name)
                return OutOfTreePlugin(name, registration.factory(args, handle), handle.cluster)
        except PluginError as error:
            context = f"initializing profiles: creating profile for scheduler name {self._profile.scheduler_name}"
            raise ConfigurationError(f'{context}: initializing plugin "{name}": {error}') from error


def plugins_at(profile: Profile, point: str, registry: Registry) -> list[str]:
    """Return the names of the plugins that are enabled at an extension point, in the order in which they run.

    A point's own plugins that are also enabled everywhere come first, then the others enabled everywhere, then the rest
    (``expandMultiPointPlugins``, ``framework/runtime/framework.go``, v1.36.3).
    """
    config = profile.points.get(point, PointConfig())
    own = [plugin.name for plugin in config.enabled]
    everywhere: list[str] = []
    if "*" not in config.disabled:
        everywhere = [
            plugin.name
            for plugin in profile.plugins
            if plugin.name not in config.disabled and point in points_in(registry, plugin.name)
        ]
    overridden = [name for name in own if name in everywhere]
    rest = [name for name in own if name not in everywhere]
    return [*overridden, *(name for name in everywhere if name not in own), *rest]


def points_in(registry: Registry, name: str) -> frozenset[str]:
    """Return the extension points that a plugin implements; empty if it is unknown."""
    return registry[name].points if name in registry else IN_TREE.get(name, frozenset())


def weights_of(profile: Profile) -> dict[str, int]:
    """Return each plugin's score weight."""
    weights = {plugin.name: plugin.weight for plugin in profile.plugins}
    return weights | {plugin.name: plugin.weight for plugin in profile.points.get("score", PointConfig()).enabled}


# Plugins that implement one of these points can register events; those that register none get all events.
_REGISTERING = frozenset(("preEnqueue", "preFilter", "filter", "reserve", "permit"))

# Returns each profile's framework by scheduler name, for the current cluster.
Frameworks = Callable[[], Mapping[str, Framework]]


def queue_rules(profiles: Sequence[Profile], registry: Registry, frameworks: Frameworks, phases: Phases) -> QueueRules:
    """Return the queue rules; ``frameworks`` is called only if an out-of-tree plugin sorts the queue or gates pods.

    All profiles have the same queue sort, so the first profile's is used, with the plugin created for the current
    cluster: the real scheduler's QueueSort has no snapshot either. Plugins that gate pods are created for the cluster
    at the time of the check.
    """
    sorter = out_of_tree_names(plugins_at(profiles[0], "queueSort", registry), registry)
    is_holding = any(out_of_tree_names(plugins_at(profile, "preEnqueue", registry), registry) for profile in profiles)
    return QueueRules(
        is_before=_order(frameworks()[profiles[0].scheduler_name], phases) if sorter else None,
        blocked_pods=_holding(frameworks, phases) if is_holding else None,
        awaits_everything=any(
            profile.has_extenders
            or any(registry[name].points & _REGISTERING for name in out_of_tree_names(profile.enabled_names, registry))
            for profile in profiles
        ),
    )


def _order(framework: Framework, phases: Phases) -> Less:
    plugin = framework.plugins.queue_sorts[0]
    # Every pod that was compared, which keeps its identity stable, and the pod as a plugin may see it.
    seen: dict[int, tuple[Pod, Pod]] = {}

    def unchangeable(info: QueuedPodInfo) -> WaitingPod:
        pod = info.pod
        if id(pod) not in seen:
            seen[id(pod)] = (pod, frozen(pod))
        return WaitingPod(seen[id(pod)][1], info.timestamp, info.attempts)

    def is_before(one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        try:
            with phases.part(plugin.name):
                return plugin.less(unchangeable(one), unchangeable(other))
        except FrameworkError as error:
            hint = "less() must not fail for any pod: an error there would crash the real scheduler, too"
            raise PluginFailedError(str(error), hint=hint) from error

    return is_before


def _holding(frameworks: Frameworks, phases: Phases) -> Callable[[Pod], str]:
    def blocked_pods(pod: Pod) -> str:
        framework = frameworks().get(pod.spec.scheduler_name)
        for plugin in framework.plugins.pre_enqueues if framework is not None else ():
            if isinstance(plugin, OutOfTreePlugin):
                with phases.part(plugin.name):
                    status = plugin.pre_enqueue(pod)
                if not status.is_success:
                    return plugin.name
        return ""

    return blocked_pods
