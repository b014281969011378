"""List what a scheduler runs, without a cluster: no plugin is created and no extender is called."""

from __future__ import annotations

from collections.abc import Iterable

from kpreempt.schedulers.extender_protocol import with_ignorable_last
from kpreempt.schedulers.kube.framework.interface import EXTENSION_POINTS, NOT_RUN
from kpreempt.schedulers.kube.plugin_table import WITHOUT_CLASS, Registry
from kpreempt.schedulers.kube.plugins.default_preemption import DefaultPreemption
from kpreempt.schedulers.kube.profile import (
    IN_TREE,
    Profile,
    default_profile,
    out_of_tree_names,
    plugins_at,
    points_in,
    weights_of,
)
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict.plugins import (
    AvailablePlugin,
    DisabledPlugin,
    ListedExtender,
    ListedPlugin,
    ListedPoint,
    ListedProfile,
    OmittedPlugin,
    SchedulerPlugins,
)

OWN_SOURCE = "kube-scheduler"
# Where asynchronous preemption keeps its preemptors out of the queue.
_ASYNCHRONOUS = (DefaultPreemption.name, ["preEnqueue"])


def list_plugins(scheduler: KubeScheduler, installed: Iterable[AvailablePlugin]) -> SchedulerPlugins:
    """Return the scheduler's plugins by profile and extension point, and its extenders.

    ``installed`` lists plugins that could be enabled.
    """
    enabled = (name for profile in scheduler.profiles for name in profile.enabled_names)
    out_of_tree = out_of_tree_names(enabled, scheduler.registry)
    return SchedulerPlugins(
        algorithm=scheduler.algorithm,
        profiles=[_listed(profile, scheduler) for profile in scheduler.profiles],
        extenders=_extenders(scheduler),
        available=[each for each in installed if each.name not in out_of_tree],
        assumptions=[each for each in scheduler.assumptions if each.subject == "scheduler"],
    )


def _listed(profile: Profile, scheduler: KubeScheduler) -> ListedProfile:
    registry, weights = scheduler.registry, weights_of(profile)
    points = []
    left_out: dict[str, list[str]] = {name: [] for name in profile.enabled_names if not _has_part(name, registry)}
    for point in EXTENSION_POINTS:
        listed = []
        for name in plugins_at(profile, point, registry):
            # Whether the plugin runs here at the point, or has nothing to do in a what-if.
            if _has_part(name, registry) and (
                point in NOT_RUN
                or name in WITHOUT_CLASS
                or registry[name].plugin is not None
                or point in registry[name].is_modeled
            ):
                listed.append(
                    ListedPlugin(
                        name,
                        (registry[name].source if name in registry else "") or OWN_SOURCE,
                        weights[name] if point == "score" else None,
                    )
                )
            else:
                left_out.setdefault(name, []).append(point)
        if listed:
            points.append(ListedPoint(point, point not in NOT_RUN, listed))
    return ListedProfile(
        scheduler_name=profile.scheduler_name,
        points=points,
        omitted=[
            OmittedPlugin(name, at, name in IN_TREE, only_delays=(name, at) == _ASYNCHRONOUS)
            for name, at in left_out.items()
            # Without asynchronous preemption, the plugin lets every pod into the queue.
            if (name, at) != _ASYNCHRONOUS or scheduler.behavior.scheduler_async_preemption
        ],
        disabled=_disabled(profile, scheduler),
    )


def _disabled(profile: Profile, scheduler: KubeScheduler) -> list[DisabledPlugin]:
    """Return the default plugins that the profile disables, in default order."""
    usual, registry = default_profile(scheduler.behavior), scheduler.registry
    enabled = {point: plugins_at(profile, point, registry) for point in EXTENSION_POINTS}
    disabled = []
    for name in usual.enabled_names:
        implemented = [point for point in EXTENSION_POINTS if point in points_in(registry, name)]
        without = [point for point in implemented if name not in enabled[point]]
        if without:
            disabled.append(DisabledPlugin(name, without, without == implemented))
    return disabled


def _has_part(name: str, registry: Registry) -> bool:
    """Return whether the plugin is modeled, or is an installed out-of-tree plugin."""
    return name in registry or name in WITHOUT_CLASS


def _extenders(scheduler: KubeScheduler) -> list[ListedExtender]:
    may_be_called = {each.settings.index for each in scheduler.extenders}
    return [
        ListedExtender(
            index=each.index,
            url=each.address,
            is_called=each.index in may_be_called
            and bool(each.filter_verb or each.prioritize_verb or each.preempt_verb),
            filter_verb=each.filter_verb,
            prioritize_verb=each.prioritize_verb,
            preempt_verb=each.preempt_verb,
            bind_verb=each.bind_verb,
            weight=each.weight,
            timeout_seconds=each.http_timeout,
            is_ignorable=each.ignorable,
            is_node_cache_capable=each.node_cache_capable,
            managed_resources=list(each.managed_resources),
            ignored_resources=list(each.ignored_resources),
        )
        for each in with_ignorable_last(scheduler.extender_settings)
    ]
