"""What the plugins of the profiles make of the scheduling queue.

Follows ``pkg/scheduler/scheduler.go`` (``New``, ``buildQueueingHintMap``), ``backend/queue/scheduling_queue.go``
(``runPreEnqueuePlugins``) and ``framework/runtime/framework.go`` (``fillEnqueueExtensions``) of v1.36.3. There a plugin
in Go that fails to compare two pods takes the scheduler down; here it ends the question.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from kpreempt.errors import PluginFailedError
from kpreempt.model.frozen import frozen
from kpreempt.model.pod import Pod
from kpreempt.phases import Phases
from kpreempt.schedulers.interface import Less, QueuedPodInfo, QueueRules, WaitingPod
from kpreempt.schedulers.kube.framework.foreign import ForeignPlugin
from kpreempt.schedulers.kube.framework.interface import FrameworkError
from kpreempt.schedulers.kube.framework.runner import Framework
from kpreempt.schedulers.kube.plugin_table import Registry
from kpreempt.schedulers.kube.profile import Profile, from_outside, plugins_at

# Plugins that implement one of these can register events; those that do not say which get all of them.
_REGISTERING = frozenset(("preEnqueue", "preFilter", "filter", "reserve", "permit"))

# The framework of each profile, by scheduler name, for the cluster as it is when it is asked for.
Frameworks = Callable[[], Mapping[str, Framework]]


def queue_rules(profiles: Sequence[Profile], registry: Registry, frameworks: Frameworks, phases: Phases) -> QueueRules:
    """The rules; ``frameworks`` is called only where an out-of-tree plugin orders the queue or holds pods back.

    The order is that of the first profile, all having the same, and of the plugin as it was made for the cluster of
    this moment: a QueueSort of the real scheduler has no snapshot either. A pod is held back by the plugins as they
    are made for the cluster when the queue asks.
    """
    sorter = from_outside(plugins_at(profiles[0], "queueSort", registry), registry)
    is_holding = any(from_outside(plugins_at(profile, "preEnqueue", registry), registry) for profile in profiles)
    return QueueRules(
        comes_first=_order(frameworks()[profiles[0].scheduler_name], phases) if sorter else None,
        held_back=_holding(frameworks, phases) if is_holding else None,
        awaits_everything=any(
            profile.has_extenders
            or any(registry[name].points & _REGISTERING for name in from_outside(profile.enabled_names, registry))
            for profile in profiles
        ),
    )


def _order(framework: Framework, phases: Phases) -> Less:
    plugin = framework.plugins.queue_sorts[0]
    # Every pod that was compared, which so keeps its identity, and the pod as a plugin may see it.
    seen: dict[int, tuple[Pod, Pod]] = {}

    def unchangeable(info: QueuedPodInfo) -> WaitingPod:
        pod = info.pod
        if id(pod) not in seen:
            seen[id(pod)] = (pod, frozen(pod))
        return WaitingPod(seen[id(pod)][1], info.timestamp, info.attempts)

    def comes_first(one: QueuedPodInfo, other: QueuedPodInfo) -> bool:
        try:
            with phases.part(plugin.name):
                return plugin.less(unchangeable(one), unchangeable(other))
        except FrameworkError as error:
            hint = "let less fail on no pods: that would end the real scheduler, too"
            raise PluginFailedError(str(error), hint=hint) from error

    return comes_first


def _holding(frameworks: Frameworks, phases: Phases) -> Callable[[Pod], str]:
    def held_back(pod: Pod) -> str:
        framework = frameworks().get(pod.spec.scheduler_name)
        for plugin in framework.plugins.pre_enqueues if framework is not None else ():
            if isinstance(plugin, ForeignPlugin):
                with phases.part(plugin.name):
                    status = plugin.pre_enqueue(pod)
                if not status.is_success:
                    return plugin.name
        return ""

    return held_back
