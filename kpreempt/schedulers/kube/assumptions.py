"""What a verdict takes for granted about the scheduler that runs: its queue, its search, what nominations protect."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.extending import Extending
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.runner import ProfilePlugins, is_same_pod
from kpreempt.schedulers.kube.preemption.plugin import preemption_rules
from kpreempt.verdict import Assumption, AssumptionKind, Sampling, Victim


def nomination_assumptions(pod: Pod, cluster: ClusterState) -> list[Assumption]:
    """Nominated pods whose room would be kept if the scheduling queue held them."""
    return [
        Assumption(
            f"Pod {nominated.key}",
            "status.nominatedNodeName",
            f"its room on {nominated.status.nominated_node_name} is not kept, because this cluster comes without a"
            " scheduling queue",
        )
        for nominated in cluster.nominated_outside_queue
        if nominated.priority >= pod.priority and not is_same_pod(nominated, pod)
    ]


def unprotected(
    plugins: ProfilePlugins, pod: Pod, plugin: str, victims: Mapping[str, list[Victim]]
) -> list[Assumption]:
    """That a nomination protects nothing, where the plugin that made it does not go by priority."""
    if not victims:
        return []
    rules = preemption_rules(plugins)
    if rules is None or rules.name != plugin or not rules.overrides("may_evict"):
        lower = [victim.priority < pod.priority for of_node in victims.values() for victim in of_node]
        if all(lower):
            return []
    return [
        Assumption(
            f"plugin {plugin}",
            "postFilter",
            "it does not evict by priority, so the nomination protects nothing: until the pod is bound, a pod of higher"
            f" priority than {pod.priority} may take the room that is made for it",
            AssumptionKind.UNCERTAIN,
        )
    ]


def asked_about_more(extending: Extending | None, num_passing: int, search: Sampling | None) -> list[Assumption]:
    """That a running scheduler puts fewer nodes to its extenders, where it stops its search before that."""
    if extending is None or search is None or all(call.verb != "filter" for call in extending.calls):
        return []
    return [
        Assumption(
            "scheduler",
            "extenders",
            f"they were asked about all {num_passing} nodes that pass the filters; a running scheduler stops its search"
            f" at {search.nodes_to_find}, and asks about those alone",
            AssumptionKind.UNCERTAIN,
        )
    ]


def through_others(plugins: ProfilePlugins, extending: Extending | None, error: str) -> list[Assumption]:
    """That the verdict is an error which out-of-tree plugins or extenders may be the cause of.

    Answers about many pods say so once; they do not show the verdicts.
    """
    has_failed = extending is not None and any(call.error and not call.ignored for call in extending.calls)
    if not plugins.has_foreign and not has_failed:
        return []
    return [Assumption("scheduler", "error", error, AssumptionKind.UNCERTAIN)]
