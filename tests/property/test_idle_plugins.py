"""An out-of-tree plugin that does nothing changes nothing, at any position: on small clusters and in columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import HealthCheck, given, settings

from kpreempt.plugins import (
    SKIP,
    SUCCESS,
    CandidateScore,
    CycleState,
    FilterPlugin,
    NodeInfo,
    Pod,
    PodInfo,
    PostFilterPlugin,
    PostFilterResult,
    PreemptionPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    ScorePlugin,
    Status,
    unschedulable,
)
from kpreempt.schedulers.kube import scheduler
from kpreempt.schedulers.kube.configuration import FoundPlugin, scheduler_from_configuration
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Verdict
from tests.conformance.cases import NOW, cluster_of, gates_of, pod_of
from tests.strategies import Object, scenarios
from tests.strategies_whole import whole_scenarios

EQUALITY = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
_DEFAULT = "DefaultPreemption"
_NO_WORD = "idle"


class Counts:
    """The number of pods on each node, kept exact in a dry run."""

    def __init__(self, on: dict[str, int]) -> None:
        self.on = on

    def clone(self) -> Counts:
        return Counts(dict(self.on))


class Idle(PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, PostFilterPlugin, PreScorePlugin, ScorePlugin):
    """A plugin at every extension point that does nothing, but counts, and rejects if its count is wrong."""

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        state.write(self.name, Counts({node_info.name: len(node_info.pods) for node_info in nodes}))
        return None, SUCCESS

    def add_pod(self, state: CycleState, pod: Pod, added: PodInfo, node_info: NodeInfo) -> None:
        self._counts(state)[node_info.name] += 1

    def remove_pod(self, state: CycleState, pod: Pod, removed: PodInfo, node_info: NodeInfo) -> None:
        self._counts(state)[node_info.name] -= 1

    def filter(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> Status:
        is_right = self._counts(state)[node_info.name] == len(node_info.pods) == node_info.num_pods
        return SUCCESS if is_right else unschedulable("miscounted")

    def _counts(self, state: CycleState) -> dict[str, int]:
        counts = state.read(self.name)
        assert isinstance(counts, Counts)
        return counts.on

    def post_filter(self, state: CycleState, pod: Pod, filtered: Any) -> tuple[PostFilterResult | None, Status]:
        return None, unschedulable(_NO_WORD)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, node_info: NodeInfo) -> int:
        return 0


class Skipping(Idle):
    """Skips itself."""

    name = "Skipping"

    def pre_filter(
        self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]
    ) -> tuple[PreFilterResult | None, Status]:
        return None, SKIP

    def pre_score(self, state: CycleState, pod: Pod, nodes: Sequence[NodeInfo]) -> Status:
        return SKIP


class Usual(PreemptionPlugin):
    """Preempts like DefaultPreemption, and reports everything it does."""

    def is_eligible_pod(self, pod: Pod, victim: PodInfo, node_info: NodeInfo) -> bool:
        return True

    def is_more_important(self, one: PodInfo, other: PodInfo) -> bool:
        return super().is_more_important(one, other)

    def check_fit(self, state: CycleState, pod: Pod, node_info: NodeInfo, put_back: PodInfo | None) -> Status:
        return SUCCESS

    def ordered_score_functions(self, candidates: Any) -> Sequence[CandidateScore]:
        return ()


def decide(scenario: Object, kube: KubeScheduler, *, at_once: bool) -> Verdict:
    """The scheduler's verdict on a scenario, on columns over all pods or on the plain path."""
    with patch.object(scheduler, "MIN_PODS_OF_TABLE", 0 if at_once else 10**9):
        prepared = kube.prepare(cluster_of(scenario["objects"]), now=NOW, is_queued=scenario.get("queued", False))
        return kube.decide(prepared, pod_of(scenario["pod"]))


def plain_scheduler(scenario: Object) -> KubeScheduler:
    return KubeScheduler(behavior=gates_of(scenario.get("featureGates")))


def scheduler_with(scenario: Object, *plugins: type) -> KubeScheduler:
    """The default scheduler with these plugins after its own."""
    names = [plugin.name for plugin in plugins]
    replaced = [{"name": _DEFAULT}] if Usual in plugins else []
    points = {
        "multiPoint": {"enabled": [{"name": name} for name in names]},
        "postFilter": {"disabled": replaced},
    }
    configuration = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": points}],
    }
    found = [FoundPlugin(plugin, "the test") for plugin in plugins]
    made = scheduler_from_configuration(configuration, plugins=found)
    return KubeScheduler(made.profiles, gates_of(scenario.get("featureGates")), registry=made.registry)


def without_own_traces(verdict: Verdict, *plugins: type) -> dict[str, Any]:
    """The verdict as plain data, without the plugins' scores and the message of one that preempts nothing."""
    scores = {
        node: {name: score for name, score in by_plugin.items() if name not in {plugin.name for plugin in plugins}}
        for node, by_plugin in verdict.plugin_scores.items()
    }
    # If the scheduler fails, an assumption says that out-of-tree plugins may be the cause.
    assumptions = [each for each in verdict.assumptions if each.field != "error"]
    reported = msgspec.structs.replace(verdict, plugin_scores=scores, assumptions=assumptions)
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(reported).decode().replace(f", {_NO_WORD}", ""))
    return plain


def assert_idle(scenario: Object, *plugins: type) -> None:
    plain = without_own_traces(decide(scenario, plain_scheduler(scenario), at_once=False))
    for at_once in (False, True):
        found = decide(scenario, scheduler_with(scenario, *plugins), at_once=at_once)
        assert without_own_traces(found, *plugins) == plain


@EQUALITY
@given(scenarios(rich=False, max_pods=15))
def test_requests_and_budgets_are_decided_as_without_it(scenario: Object) -> None:
    assert_idle(scenario, Idle)


@EQUALITY
@given(whole_scenarios())
def test_any_mix_of_features_is_decided_as_without_it(scenario: Object) -> None:
    assert_idle(scenario, Idle, Skipping)


@EQUALITY
@given(scenarios(rich=True))
def test_a_plugin_with_the_default_rules_preempts_like_the_default(scenario: Object) -> None:
    assert_idle(scenario, Usual)
