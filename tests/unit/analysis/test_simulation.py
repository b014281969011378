"""What follows from a verdict: which pods end when, what replaces them, what that displaces, and how it ends."""

from __future__ import annotations

import random
from collections.abc import Sequence

import msgspec
import pytest

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.queue.waiting import Waiting
from kpreempt.analysis.simulation.client import Client, Controller
from kpreempt.analysis.simulation.cluster import SimulatedCluster
from kpreempt.analysis.simulation.engine import Limits, SimulationStart, simulate
from kpreempt.analysis.simulation.result import Chain
from kpreempt.analysis.simulation.scheduling import AT_ONCE, Branch, Pace
from kpreempt.controllers.actions import SyncError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import AnnotatedMeta, OwnerReference
from kpreempt.model.pod import Pod
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.schedulers.kube.configuration import scheduler_from_configuration
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.simulation import Simulation, SimulationEnd, StepKind
from tests.factories import NOW, make_node, make_pod


def owned(pod: Pod, kind: str, name: str) -> Pod:
    """The pod as one that a controller manages."""
    owner = OwnerReference(
        kind=kind, name=name, uid=name, api_version="batch/v1" if kind == "Job" else "apps/v1", controller=True
    )
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))


def simulate_scenario(pods: list[Pod], new: Pod, *, nodes: int = 1, **more: object) -> Simulation:
    """What follows where ``new`` comes to a cluster with these pods on nodes of 2 CPUs."""
    limits = more.pop("limits", None)
    cluster = ClusterSnapshot(nodes=[make_node(f"n{index}", cpu="2") for index in range(1, nodes + 1)], pods=pods)
    cluster = msgspec.structs.replace(cluster, **more)
    found, *_ = simulate(cluster, SimulationStart(arriving=[new]), KubeScheduler(), now=NOW, limits=limits)  # type: ignore[arg-type]
    return found


def tale(found: Simulation) -> list[str]:
    """The steps in short."""
    return [f"{step.at:g} {step.kind} {step.pod.removeprefix('shop/')}" for step in found.steps]


NEW = make_pod("new", cpu="2", priority=1000)


def test_a_pod_that_fits_lands_at_once_and_nothing_follows() -> None:
    found = simulate_scenario([], NEW)
    assert tale(found) == ["0 Created new", "0 Bound new"]
    assert (found.end, found.seconds, found.starts_at) == (SimulationEnd.SETTLED, 0, {"shop/new": 0})


@pytest.mark.parametrize(
    ("configuration", "gates", "start"),
    [
        pytest.param({}, {}, 1, id="as it is by default: at once, as nobody else waits"),
        pytest.param({}, {"SchedulerPopFromBackoffQ": False}, 2, id="after the usual backoff"),
        pytest.param({"podInitialBackoffSeconds": 5}, {}, 1, id="out of a longer backoff"),
        pytest.param(
            {"podInitialBackoffSeconds": 5}, {"SchedulerPopFromBackoffQ": False}, 6, id="not out of a longer backoff"
        ),
    ],
)
def test_the_queue_of_a_simulation_is_set_up_as_the_scheduler_is(
    configuration: dict[str, int], gates: dict[str, bool], start: float
) -> None:
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    scheduler = scheduler_for("", {**header, **configuration}, gates)
    victim = make_pod("quick", node="n1", cpu="1", termination_grace_period_seconds=1)
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=[victim])
    found, *_ = simulate(cluster, SimulationStart(arriving=[NEW]), scheduler, now=NOW)
    assert found.starts_at == {"shop/new": start}


def test_without_pod_priority_the_queue_of_1_13_is_in_the_order_of_arrival() -> None:
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")])
    first, second = make_pod("first", cpu="2"), make_pod("second", cpu="2", priority=9)
    for gates, winner in (({}, "shop/second"), ({"PodPriority": False}, "shop/first")):
        scheduler = scheduler_for("kube-1.13", None, gates)
        found, *_ = simulate(cluster, SimulationStart(arriving=[first, second]), scheduler, now=NOW)
        assert found.starts_at == {winner: 0}


def test_a_preemptor_starts_when_the_victim_with_the_longest_grace_period_is_gone() -> None:
    victims = [
        make_pod("quick", node="n1", cpu="1", termination_grace_period_seconds=5),
        make_pod("slow", node="n1", cpu="1", termination_grace_period_seconds=90),
    ]
    found = simulate_scenario(victims, NEW)
    assert found.starts_at == {"shop/new": 90}
    assert [step.pod for step in found.steps if step.kind is StepKind.TERMINATED] == ["shop/quick", "shop/slow"]


def test_a_preemptor_whose_victims_are_terminating_evicts_no_other_pod() -> None:
    victims = [
        make_pod("quick", node="n1", cpu="1", priority=10, termination_grace_period_seconds=5),
        make_pod("slow", node="n1", cpu="1", priority=10, termination_grace_period_seconds=90),
    ]
    # When it is gone, the other node would be the better choice.
    leaving = make_pod("leaving", node="n2", cpu="1", priority=2000)
    metadata = msgspec.structs.replace(leaving.metadata, deletion_timestamp=NOW.replace(second=12))
    leaving = msgspec.structs.replace(leaving, metadata=metadata)
    small = make_pod("small", node="n2", cpu="1", priority=1)
    found = simulate_scenario([*victims, leaving, small], NEW, nodes=2)
    assert sorted(each.pod for each in found.displaced) == ["shop/quick", "shop/slow"]
    assert found.starts_at == {"shop/new": 90}


def test_a_pod_that_finds_no_victim_on_its_nominated_node_gives_the_node_up() -> None:
    other = make_pod("other", node="n1", cpu="1", priority=1000)
    nominated, small = (
        make_pod("nominated", cpu="2", priority=10, nominated="n1"),
        make_pod("small", cpu="1", priority=10),
    )
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=[other, nominated, small])
    waiting = [Waiting(pod, NOW, NOW) for pod in (nominated, small)]
    found, *_ = simulate(cluster, SimulationStart(waiting=waiting), KubeScheduler(), now=NOW)
    assert tale(found) == ["0 Bound small"]


def racing(pace: Pace) -> Simulation:
    """Two pods are displaced for two others, the small one first; where they meet again the small one leaves no room.

    Where the small one is tried first, one pod has to go for it, and the big one waits. Else two go for the big one.
    """
    cluster = ClusterSnapshot(
        nodes=[make_node(name, cpu="2", labels={"for": name}) for name in ("n1", "n2", "n3")],
        pods=[
            owned(make_pod("small-a", node="n1", cpu="1", priority=100), "ReplicaSet", "small"),
            make_pod("beside", node="n1", cpu="1", priority=2000),
            owned(make_pod("big-a", node="n2", cpu="2", priority=100), "ReplicaSet", "big"),
            make_pod("batch-a", node="n3", cpu="1", priority=1),
            make_pod("batch-b", node="n3", cpu="1", priority=2),
        ],
    )
    arriving = [
        make_pod("first", cpu="1", priority=1000, node_selector={"for": "n1"}),
        make_pod("second", cpu="2", priority=1000, node_selector={"for": "n2"}),
    ]
    found, *_ = simulate(cluster, SimulationStart(arriving=arriving, pace=pace), KubeScheduler(), now=NOW)
    return found


def test_how_long_everything_takes_decides_who_is_tried_first_and_so_who_has_to_go() -> None:
    assert len(racing(AT_ONCE).displaced) == 3
    found = [racing(Pace(random.Random(seed).random)) for seed in range(1, 15)]
    assert {len(each.displaced) for each in found} == {3, 4}
    assert {each.end for each in found} == {SimulationEnd.SETTLED}


def test_times_that_were_drawn_are_rounded_to_the_second() -> None:
    found = racing(Pace(random.Random(1).random))
    times = [found.seconds, *(step.at for step in found.steps), *found.starts_at.values()]
    assert [at for at in times if at != int(at)] == []
    assert times[1:-2] == sorted(times[1:-2])


@pytest.mark.parametrize(
    ("kind", "arrives_at"),
    [
        pytest.param("ReplicaSet", 0, id="a ReplicaSet replaces a pod as soon as it is told to go"),
        pytest.param("Job", 10, id="a Job waits for its backoff"),
        pytest.param("StatefulSet", 30, id="a StatefulSet waits until it is gone"),
        pytest.param("DaemonSet", 30, id="a DaemonSet, too"),
    ],
)
def test_controllers_replace_victims_in_their_time(kind: str, arrives_at: int) -> None:
    found = simulate_scenario([owned(make_pod("old-0", node="n1", cpu="2"), kind, "old")], NEW)
    arrivals = [step.at for step in found.steps if step.kind is StepKind.CREATED and step.cause == "shop/old-0"]
    assert arrivals == [arrives_at]
    assert [(pod.pod == "shop/old-0", pod.was_running) for pod in found.pending] == [(kind == "StatefulSet", True)]


def test_a_job_waits_longer_the_more_of_its_pods_fail() -> None:
    pods = [owned(make_pod(f"run-{index}", node="n1", cpu="1"), "Job", "run") for index in range(2)]
    found = simulate_scenario(pods, NEW)
    arrivals = [step.at for step in found.steps if step.kind is StepKind.CREATED and step.cause]
    assert arrivals == [20, 20]


def test_a_pod_without_a_controller_is_not_replaced() -> None:
    found = simulate_scenario([make_pod("bare", node="n1", cpu="2")], NEW)
    assert [each.replacement for each in found.displaced] == [""]
    assert found.pending == []


def test_a_victim_displaces_others_in_turn_and_the_chain_is_reported() -> None:
    middle = owned(make_pod("middle-a", node="n1", cpu="2", priority=100), "ReplicaSet", "middle")
    low = owned(make_pod("low-a", node="n2", cpu="2", priority=10), "ReplicaSet", "low")
    top = make_pod("top", node="n3", cpu="2", priority=2000)
    only = make_pod("new", cpu="2", priority=1000, node_selector={"kubernetes.io/hostname": "n1"})
    found = simulate_scenario([middle, low, top], only, nodes=3)

    reported = [(each.pod, each.cause, each.depth, each.lands_on) for each in found.displaced]
    assert reported == [("shop/middle-a", "shop/new", 1, "n2"), ("shop/low-a", "shop/middle-new-1", 2, "")]
    assert (found.depth, [pod.owner for pod in found.pending]) == (2, ["ReplicaSet low"])


class Failing(Controller):
    """A controller that fails, or that never has enough."""

    def __init__(self, problem: str) -> None:
        super().__init__([("shop", "ReplicaSet", "bad")], desired=1, workload="Deployment shop/bad")
        self._problem = problem

    def sync(self, client: Client) -> bool:
        if self._problem:
            raise SyncError(self._problem)
        return True

    def is_done(self, client: Client) -> bool:
        return False


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ("no percentage", "its controller does nothing: no percentage"),
        ("", "its controller never settles; only its first actions, up to the limit, are simulated"),
    ],
    ids=["fails", "goes round"],
)
def test_a_controller_that_comes_to_nothing_is_an_assumption(problem: str, message: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")])
    found, assumptions, _ = simulate(
        cluster, SimulationStart(arriving=[NEW], controllers=[Failing(problem)]), KubeScheduler(), now=NOW
    )
    assert [(each.subject, each.message, each.kind) for each in assumptions] == [
        ("Deployment shop/bad", message, AssumptionKind.UNCERTAIN)
    ]
    assert found.end is SimulationEnd.SETTLED


def test_a_chain_may_be_as_long_as_there_are_pods() -> None:
    chain, length = Chain(), 5000
    for index in range(length):
        cause = f"shop/pod-{index - 1}-again" if index else "shop/new"
        chain.evicted(make_pod(f"pod-{index}", node=f"n{index}"), cause, [])
        chain.replaced(f"shop/pod-{index}", f"shop/pod-{index}-again")
    found = chain.displaced()
    assert [each.depth for each in found] == list(range(1, length + 1))
    assert found[-1].cause == f"shop/pod-{length - 2}-again"


def test_a_budget_counts_down_and_recovers() -> None:
    pods = [
        owned(make_pod(f"web-{index}", node="n1", cpu="1", labels={"app": "web"}), "ReplicaSet", "web")
        for index in range(2)
    ]
    budget = PodDisruptionBudget(
        metadata=AnnotatedMeta(name="web", namespace="shop"),
        spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels={"app": "web"})),
        status=PodDisruptionBudgetStatus(disruptions_allowed=1, current_healthy=2, desired_healthy=1, expected_pods=2),
    )
    keeper = make_pod("keeper", node="n2", cpu="1", priority=2000)
    new = make_pod("new", cpu="2", priority=1000)
    found = simulate_scenario([*pods, keeper], new, nodes=2, pod_disruption_budgets=[budget])
    (low,) = found.budgets
    assert (low.before, low.min, low.after, low.violations) == (1, 0, 0, 1)


def test_a_pod_that_waited_before_takes_the_room_that_is_left() -> None:
    victim = make_pod("big", node="n1", cpu="2")
    patient = make_pod("patient", cpu="1", priority=5)
    found = simulate_scenario([victim, patient], make_pod("new", cpu="1", priority=1000))
    assert [step.pod for step in found.steps if step.kind is StepKind.BOUND] == ["shop/new", "shop/patient"]


def test_pods_that_were_leaving_already_are_gone_in_their_time() -> None:
    leaving = make_pod("leaving", node="n1", cpu="2", priority=2000)
    metadata = msgspec.structs.replace(leaving.metadata, deletion_timestamp=NOW.replace(second=12))
    found = simulate_scenario([msgspec.structs.replace(leaving, metadata=metadata)], NEW)
    assert found.starts_at == {"shop/new": 12}


def test_a_simulation_that_is_too_long_is_broken_off_and_says_so() -> None:
    victims = [owned(make_pod(f"old-{index}", node="n1", cpu="1"), "ReplicaSet", "old") for index in range(2)]
    assert simulate_scenario(victims, NEW, limits=Limits(attempts=2)).end is SimulationEnd.ABORTED
    assert simulate_scenario(victims, NEW, limits=Limits(seconds=10)).end is SimulationEnd.ABORTED


def test_a_victim_may_take_longer_to_stop_than_the_calendar_lasts() -> None:
    found = simulate_scenario([make_pod("old", node="n1", cpu="2", termination_grace_period_seconds=2**63 - 1)], NEW)
    assert (found.end, found.starts_at) == (SimulationEnd.ABORTED, {})


def test_what_holds_a_victim_or_manages_it_unknown_to_us_is_an_assumption() -> None:
    held = make_pod("held", node="n1", cpu="1")
    held = msgspec.structs.replace(held, metadata=msgspec.structs.replace(held.metadata, finalizers=["shop/upload"]))
    foreign = owned(make_pod("foreign", node="n1", cpu="1"), "Workflow", "nightly")
    cluster = ClusterSnapshot(nodes=[make_node("n1", cpu="2")], pods=[held, foreign])
    _, assumptions, _ = simulate(cluster, SimulationStart(arriving=[NEW]), KubeScheduler(), now=NOW)
    assert [(each.subject, each.field) for each in assumptions] == [
        ("Pod shop/foreign", "metadata.ownerReferences"),
        ("Pod shop/held", "metadata.finalizers"),
    ]
    assert {each.kind for each in assumptions} == {AssumptionKind.UNCERTAIN}


def test_where_not_all_nodes_are_scored_a_pod_may_land_on_another_than_the_best() -> None:
    # A hundred of the nodes are scored, from any of them on: the best is left out from two starts of 102.
    cluster = ClusterSnapshot(nodes=[make_node(f"n{index}", cpu="8" if index == 50 else "4") for index in range(102)])
    requested: list[tuple[int, str, float]] = []

    def choose(branches: Sequence[Branch]) -> Branch:
        requested.append((len(branches), branches[0].node, branches[0].weight))
        return branches[-1]

    found, *_ = simulate(cluster, SimulationStart(arriving=[NEW], choose=choose), KubeScheduler(), now=NOW)
    assert requested == [(102, "n50", 100 / 102)]
    assert [step.node for step in found.steps if step.kind is StepKind.BOUND] == ["n101"]


def test_where_the_search_is_sampled_every_possible_winner_is_drawn_with_its_own_probability_and_victims() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 2}
    profile = {"pluginConfig": [{"name": "DefaultPreemption", "args": args}]}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    scheduler = scheduler_from_configuration(configuration | {"profiles": [profile]})
    priorities = [5, 1, 3, 2, 4]
    cluster = ClusterSnapshot(
        nodes=[make_node(f"n{index}", cpu="2") for index in range(5)],
        pods=[
            make_pod(f"p{index}", node=f"n{index}", cpu="2", priority=each, started=NOW)
            for index, each in enumerate(priorities)
        ],
    )
    requested: list[tuple[list[str], list[float]]] = []

    def evicted_with(taken: int) -> str:
        def choose(branches: Sequence[Branch]) -> Branch:
            requested.append(([branch.node for branch in branches], [branch.weight for branch in branches]))
            return branches[taken]

        found, *_ = simulate(cluster, SimulationStart(arriving=[NEW], choose=choose), scheduler, now=NOW)
        assert found.draws == 1
        (left,) = [step.pod for step in found.steps if step.kind is StepKind.TERMINATING]
        return left

    # Of five nodes in a ring two neighbours are looked at.
    assert [evicted_with(taken) for taken in range(3)] == ["shop/p1", "shop/p3", "shop/p4"]
    assert requested == [(["n1", "n3", "n4"], [2 / 5, 2 / 5, 1 / 5])] * 3


@pytest.mark.parametrize(("version", "selected"), [("1.34", 0), ("1.35", 1)])
def test_a_pod_gets_the_labels_of_its_nodes_zone_when_it_is_bound(version: str, selected: int) -> None:
    zone = {"topology.kubernetes.io/zone": "a"}
    node = make_node("n1", cpu="2", labels=zone)
    cluster = SimulatedCluster(ClusterSnapshot(nodes=[node]), KubeScheduler(behavior=behavior(version)), NOW)
    cluster.create(make_pod("new", cpu="1"))
    labels = cluster.bind("shop/new", "n1").metadata.labels
    assert len(zone.items() & labels.items()) == selected
