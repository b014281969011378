"""Laws of every rollout, for any cluster and change."""

from __future__ import annotations

import copy
import json
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.check.gate import GateRules
from kpreempt.analysis.check.simulations import Rollouts, Simulated, SimulationContext, Simulations
from kpreempt.snapshot.decode import decode_object
from kpreempt.verdict.check import RuleId
from kpreempt.verdict.simulation import Simulation, SimulationEnd, SimulationStep, StepKind
from tests.rollouts import BEFORE, NOW, Document, chances, checked, nodes, planned, priority_class, running, workload

LAWS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
CLASSES = {"low": 10, "high": 1000}
KINDS = ("Deployment", "StatefulSet", "DaemonSet", "Job")
_DEFAULT = priority_class("usual", 100, globalDefault=True)


class Scenario(NamedTuple):
    """A cluster and a change to it, as documents."""

    cluster: list[Document]
    change: list[Document]
    deleted: list[str]


def amounts() -> st.SearchStrategy[int | str]:
    """Numbers of pods and percentages."""
    return st.integers(0, 3) | st.sampled_from(["0%", "1%", "25%", "34%", "50%", "100%"])


@st.composite
def strategies(draw: st.DrawFn, kind: str) -> Document:
    """How a workload of a kind replaces its pods, in a form that the API server accepts."""
    if kind == "Deployment":
        if draw(st.integers(0, 4)) == 0:
            return {"strategy": {"type": "Recreate"}}
        surge, unavailable = draw(amounts()), draw(amounts())
        if surge in (0, "0%") and unavailable in (0, "0%"):
            surge = 1
        return {
            "strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}},
            "minReadySeconds": draw(st.sampled_from([0, 0, 5])),
        }
    if kind == "DaemonSet":
        rolling = draw(
            st.sampled_from([{"maxUnavailable": 1}, {"maxUnavailable": "50%"}, {"maxSurge": 1, "maxUnavailable": 0}])
        )
        return {"updateStrategy": {"rollingUpdate": rolling}}
    if kind == "StatefulSet":
        policy = draw(st.sampled_from(["OrderedReady", "Parallel"]))
        partition = draw(st.sampled_from([0, 0, 1]))
        return {
            "podManagementPolicy": policy,
            "serviceName": "db",
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": partition}},
        }
    return {}


@st.composite
def manifests(draw: st.DrawFn, kind: str, name: str, cpus: tuple[str, ...] = ("500m", "1", "2")) -> Document:
    """A workload of up to four pods."""
    more = draw(strategies(kind))
    size = draw(st.integers(0, 4))
    if kind == "Job":
        more |= {"parallelism": size, "completions": 10}
    elif kind != "DaemonSet":
        more["replicas"] = size
    chosen = draw(st.sampled_from([None, *CLASSES]))
    pod = {"priorityClassName": chosen} if chosen else {}
    return workload(kind, name, cpu=draw(st.sampled_from(cpus)), pod=pod, **more)


def size_of(manifest: Document) -> int:
    spec = manifest["spec"]
    return int(spec.get("parallelism", spec.get("replicas", 0)))


def priority_of(manifest: Document) -> int:
    # Pods older than the default class have none.
    return CLASSES.get(manifest["spec"]["template"]["spec"].get("priorityClassName", ""), 0)


def placed(manifest: Document, room: dict[str, int]) -> list[Document]:
    """The workload with its pods placed, reducing the free capacity."""
    incoming = manifest["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    milli = int(incoming.removesuffix("m")) if incoming.endswith("m") else int(incoming) * 1000
    on: list[str] = []
    each_once = manifest["kind"] == "DaemonSet"
    for node in room if each_once else list(room) * 4:
        if room[node] >= milli and (each_once or len(on) < size_of(manifest)):
            room[node] -= milli
            on.append(node)
    return running(manifest, on, priority_of(manifest))


def budgets() -> st.SearchStrategy[list[Document]]:
    def made(app: str, amount: int | str) -> Document:
        return {
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": f"of-{app}", "namespace": "shop"},
            "spec": {"minAvailable": amount, "selector": {"matchLabels": {"app": app}}},
        }

    return st.lists(
        st.builds(made, st.sampled_from(["a", "b", "c"]), amounts()),
        max_size=2,
        unique_by=lambda each: str(each["metadata"]),
    )


@st.composite
def scenarios(draw: st.DrawFn, kinds: tuple[str, ...] = KINDS) -> Scenario:
    """Up to three workloads on up to four nodes, of which some are changed, new or deleted."""
    room = dict.fromkeys((f"n{index}" for index in range(1, draw(st.integers(1, 4)) + 1)), 2000)
    cluster: list[Document] = [*nodes(len(room)), *(priority_class(name, value) for name, value in CLASSES.items())]
    cluster += [_DEFAULT] if draw(st.booleans()) else []
    change: list[Document] = []
    deleted: list[str] = []
    for name in ("a", "b", "c"):
        kind = draw(st.sampled_from(kinds))
        manifest = draw(manifests(kind, name))
        fate = draw(st.sampled_from(["stays", "rolled", "scaled", "new", "deleted"]))
        if fate != "new":
            cluster += placed(manifest, room)
        if fate == "deleted":
            deleted.append(f"{kind}/{name}")
        elif fate != "stays":
            after = copy.deepcopy(manifest)
            if fate == "rolled":
                after["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
            if fate == "scaled" and kind != "DaemonSet":
                after["spec"]["parallelism" if kind == "Job" else "replicas"] = draw(st.integers(0, 4))
            change.append(after)
    return Scenario([*cluster, *draw(budgets())], change, deleted)


def simulate_scenario(scenario: Scenario, seed: int = 0) -> Simulated:
    plan = planned(scenario.cluster, scenario.change, scenario.deleted)
    context = SimulationContext(scheduler_for(""), NOW, NOW, chances)
    simulations = Simulations(Rollouts(plan, decode_object, context), context)
    return simulations.by_chance(seed)


@LAWS
@given(scenarios(), st.integers(0, 3))
def test_a_simulation_ends_is_the_same_again_and_changes_nothing(scenario: Scenario, seed: int) -> None:
    plan = planned(scenario.cluster, scenario.change, scenario.deleted)
    before = json.dumps([scenario, [pod.key for pod in plan.cluster.pods]])
    context = SimulationContext(scheduler_for(""), NOW, NOW, chances)
    simulations = Simulations(Rollouts(plan, decode_object, context), context)
    first = simulations.by_chance(seed)
    assert simulations.by_chance(seed) == first
    assert first.simulation.end is not SimulationEnd.ABORTED
    assert json.dumps([scenario, [pod.key for pod in plan.cluster.pods]]) == before


def resolved(amount: int | str, replicas: int, *, up: bool) -> int:
    """A number of pods, or a percentage rounded as a Deployment does."""
    if isinstance(amount, int):
        return amount
    share = int(amount.removesuffix("%")) * replicas
    return -(-share // 100) if up else share // 100


class Watched:
    """The pods of one Deployment according to the steps."""

    def __init__(self, simulated: Simulated, name: str) -> None:
        self._prefixes = (f"shop/{name}-old-", f"shop/{name}-new-")
        own = [pod for pod in simulated.before.pods if self.is_own(pod.key)]
        self.there = {pod.key for pod in own}
        # Pods of the input are available: they have been ready for a day.
        self.available = {pod.key for pod in own if pod.spec.node_name}

    def is_own(self, key: str) -> bool:
        return key.startswith(self._prefixes)

    def see(self, step: SimulationStep) -> None:
        if not self.is_own(step.pod):
            return
        if step.kind is StepKind.CREATED:
            self.there.add(step.pod)
        elif step.kind is StepKind.TERMINATING:
            self.there.discard(step.pod)
            self.available.discard(step.pod)
        elif step.kind is StepKind.BOUND:
            self.available.add(step.pod)


@st.composite
def rollouts(draw: st.DrawFn) -> Scenario:
    """One Deployment that rolls out at its size, next to another one."""
    room = dict.fromkeys((f"n{index}" for index in range(1, draw(st.integers(1, 4)) + 1)), 2000)
    more = draw(strategies("Deployment").filter(lambda each: each["strategy"].get("type") != "Recreate"))
    pod = {"priorityClassName": draw(st.sampled_from(list(CLASSES)))}
    manifest = workload("Deployment", "a", replicas=draw(st.integers(1, 6)), cpu="500m", pod=pod, **more)
    other = draw(manifests("Deployment", "b"))
    cluster = [*nodes(len(room)), *(priority_class(name, value) for name, value in CLASSES.items())]
    cluster += [*placed(manifest, room), *placed(other, room)]
    after = copy.deepcopy(manifest)
    after["spec"]["template"]["spec"]["containers"][0]["image"] = "two"
    return Scenario(cluster, [after], [])


@LAWS
@given(rollouts())
def test_a_deployment_respects_its_strategy(scenario: Scenario) -> None:
    (manifest,) = scenario.change
    replicas, rolling = manifest["spec"]["replicas"], manifest["spec"]["strategy"]["rollingUpdate"]
    surge = resolved(rolling["maxSurge"], replicas, up=True)
    unavailable = resolved(rolling["maxUnavailable"], replicas, up=False)
    if not surge and not unavailable:
        unavailable = 1
    simulated = simulate_scenario(scenario)
    watched = Watched(simulated, "a")
    most = max(replicas + surge, len(watched.there))
    for step in simulated.simulation.steps:
        before = len(watched.available)
        was_available = step.pod in watched.available
        watched.see(step)
        if step.kind is StepKind.TERMINATING and was_available and not step.cause:
            assert before - 1 >= min(before, replicas - unavailable), step
        assert len(watched.there) <= most, step


@LAWS
@given(st.data())
def test_a_rollout_with_enough_capacity_completes(data: st.DataObject) -> None:
    kind = data.draw(st.sampled_from(KINDS))
    before = data.draw(manifests(kind, "a", ("100m",)))
    after = data.draw(manifests(kind, "a", ("100m",)))
    if kind == "StatefulSet":
        # Immutable.
        after["spec"]["podManagementPolicy"] = before["spec"]["podManagementPolicy"]
    count = data.draw(st.integers(1, 3))
    room = dict.fromkeys((f"n{index}" for index in range(1, count + 1)), 2000)
    there = placed(before, room) if data.draw(st.booleans()) else []
    classes = [priority_class(name, value) for name, value in CLASSES.items()]
    simulation = simulate_scenario(Scenario([*nodes(count), *classes, *there], [after], [])).simulation
    assert (simulation.end, simulation.displaced, simulation.pending) == (SimulationEnd.SETTLED, [], [])
    assert all(each.is_done for each in simulation.workloads)
    assert all(
        each.ready_after == each.desired_after for each in simulation.workloads if each.desired_after is not None
    )


@LAWS
@given(scenarios())
def test_victims_have_a_lower_priority_than_their_preemptor(scenario: Scenario) -> None:
    simulation = simulate_scenario(scenario).simulation
    known: dict[str, int] = {}
    for step in simulation.steps:
        if step.kind is StepKind.TERMINATING and step.cause:
            assert step.priority < known[step.cause]
        elif step.kind is not StepKind.SCALED:
            known[step.pod] = step.priority
    reported = [(step.pod, step.cause) for step in simulation.steps if step.kind is StepKind.TERMINATING and step.cause]
    assert sorted((each.pod, each.cause) for each in simulation.displaced) == sorted(reported)


@LAWS
@given(scenarios())
def test_the_numbers_of_budgets_and_workloads_agree_with_the_steps(scenario: Scenario) -> None:
    simulated = simulate_scenario(scenario)
    simulation = simulated.simulation
    for budget in simulation.budgets:
        assert budget.min <= min(budget.before, budget.after)
    broken = [name for step in simulation.steps for name in step.violated]
    assert {each.budget: each.violations for each in simulation.budgets if each.violations} == {
        name: broken.count(name) for name in broken
    }
    for each in simulation.workloads:
        assert each.ready_min <= min(each.ready_before, each.ready_after)
        assert each.ready_after <= sum(each.nodes_after.values())
        assert each.victims == sum(victim.workload == each.workload for victim in simulation.displaced)
        assert each.pending_after == _unplaced(simulated, simulation, each.workload)
        assert 0 <= each.ready_min_at <= simulation.seconds


def _unplaced(simulated: Simulated, simulation: Simulation, workload_name: str) -> int:
    waiting = {each.pod for each in simulation.pending if each.workload == workload_name}
    unreported = {pod.key for pod in simulated.after.pods if not pod.spec.node_name} - {
        each.pod for each in simulation.pending
    }
    assert not unreported
    return len(waiting)


@LAWS
@given(scenarios(("Deployment", "Job")), st.sampled_from(["500m", "1", "2", "4"]), st.sampled_from(["low", "high"]))
def test_an_additional_empty_node_never_fails_the_check_of_one_pod(scenario: Scenario, cpu: str, chosen: str) -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "one", "namespace": "shop", "creationTimestamp": BEFORE},
        "spec": {
            "priorityClassName": chosen,
            "containers": [{"name": "main", "image": "one", "resources": {"requests": {"cpu": cpu}}}],
        },
    }
    rules = GateRules(limits={RuleId.MAX_VICTIMS: 1, RuleId.MAX_CASCADE_DEPTH: 1})
    extra: list[dict[str, Any]] = nodes(9)[-1:]
    if checked(scenario.cluster, [pod], rules=rules).passed:
        assert checked([*scenario.cluster, *extra], [pod], rules=rules).passed


@pytest.mark.parametrize(("amount", "up", "number"), [("34%", True, 2), ("34%", False, 1), (3, True, 3)])
def test_percentages_are_rounded_as_deployments_round_them(amount: int | str, up: bool, number: int) -> None:
    assert resolved(amount, 5, up=up) == number
