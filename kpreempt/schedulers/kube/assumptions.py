"""What a verdict takes for granted about the scheduler that runs: its queue, its search, what nominations protect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kpreempt.model.pod import Pod, ResourceList
from kpreempt.schedulers.kube.extending import Extending
from kpreempt.schedulers.kube.framework.cluster_state import ClusterState
from kpreempt.schedulers.kube.framework.interface import PreemptionEvidence
from kpreempt.schedulers.kube.framework.node_info import NodeInfo, is_same_pod
from kpreempt.schedulers.kube.framework.runner import ProfilePlugins
from kpreempt.schedulers.kube.plugins.image_locality import ImageLocality
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


def rounded_images(
    plugins: ProfilePlugins, pod: Pod, feasible: Sequence[NodeInfo], cluster: ClusterState
) -> list[Assumption]:
    """That redaction rounded the sizes of images, where another size would give a node another score."""
    if not cluster.has_rounded_images or len(feasible) < 2:
        return []
    raters = [each for each in plugins.scores if isinstance(each, ImageLocality)]
    if all(each.is_certain(pod, node_info) for each in raters for node_info in feasible):
        return []
    return [rounded_sizes(pod)]


def rounded_sizes(pod: Pod) -> Assumption:
    """That scores of a pod hang on how its images are rounded."""
    message = "sizes of images are rounded in a redacted snapshot; with the real ones another node may score best"
    return Assumption(f"Pod {pod.key}", "spec.containers[*].image", message, AssumptionKind.UNCERTAIN)


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


def unordered_budgets(evidence: PreemptionEvidence | None, cluster: ClusterState) -> list[Assumption]:
    """That budgets which protect one pod are taken in the order of the input, where another order leaves others."""
    if evidence is None or not evidence.hangs_on_budget_order or cluster.cluster.has_scheduler_order:
        return []
    return [
        Assumption(
            "PodDisruptionBudgets",
            "",
            "several protect one pod, and what a violated one leaves of the others hangs on their order in the"
            " scheduler's cache, which is not known: others may be evicted",
            AssumptionKind.UNCERTAIN,
        )
    ]


def unpatched(pod: Pod, victims: Mapping[str, list[Victim]], cluster: ClusterState) -> list[Assumption]:
    """That releases which patch the preemptor's status onto victims fail where the QoS class is another.

    The API server refuses that class, and no pod is nominated (``prepareCandidate``,
    ``framework/preemption/preemption.go`` of v1.29.8).
    """
    behaviour = cluster.behaviour
    if not (behaviour.patches_status_of_preemptor and behaviour.pod_disruption_conditions):
        return []
    own = qos_class(pod)
    pods = {info.key: info.pod for node in victims for info in cluster.by_name[node].pods}
    others = [each.pod for of_node in victims.values() for each in of_node if qos_class(pods[each.pod]) != own]
    if not others:
        return []
    return [
        Assumption(
            "scheduler",
            "DisruptionTarget",
            f"the API server may refuse the condition of {others[0]}, which is of another QoS class than the pod: this"
            " release sends the pod's own with it, and ends the preemption then",
            AssumptionKind.UNCERTAIN,
        )
    ]


def qos_class(pod: Pod) -> str:
    """How the kubelet ranks the pod: Guaranteed, Burstable or BestEffort, by CPU and memory (``GetPodQOS``)."""
    containers = [*pod.spec.containers, *pod.spec.init_containers]
    requests = [_positive(each.resources.requests) for each in containers]
    limits = [_positive(each.resources.limits) for each in containers]
    if not any(requests) and not any(limits):
        return "BestEffort"
    is_guaranteed = all(
        own.keys() == set(_QOS) and {**own, **asked} == own for asked, own in zip(requests, limits, strict=True)
    )
    return "Guaranteed" if is_guaranteed else "Burstable"


def _positive(amounts: ResourceList) -> dict[str, int]:
    return {name: amounts[name].nano for name in _QOS if name in amounts and amounts[name].nano > 0}


_QOS = ("cpu", "memory")


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


MISSED_ERRORS = Assumption(
    "scheduler",
    "error",
    "whether the search for nodes comes to one on which a filter fails, before enough fit, is left to chance",
    AssumptionKind.UNCERTAIN,
)


def through_others(plugins: ProfilePlugins, extending: Extending | None, error: str) -> list[Assumption]:
    """That the verdict is an error which out-of-tree plugins or extenders may be the cause of.

    Answers about many pods say so once; they do not show the verdicts.
    """
    has_failed = extending is not None and any(call.error and not call.ignored for call in extending.calls)
    if not plugins.has_foreign and not has_failed:
        return []
    return [Assumption("scheduler", "error", error, AssumptionKind.UNCERTAIN)]
