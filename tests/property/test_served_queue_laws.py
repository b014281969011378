"""What is said to become of the pods in the queue agrees with every order that the known times allow."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.analysis.algorithms import AnalysisContext, pending_pods, scheduler_for
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.queue.state import scheduling_queue
from kpreempt.analysis.workload.placing import Placing
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event, EventSeries, ObjectReference
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.snapshot.decode import decode_object
from kpreempt.verdict.served import ServedQueue, TurnOutcome
from tests.factories import NOW, make_node, make_pod

LAWS = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
SCHEDULER = scheduler_for()
SECOND = timedelta(seconds=1)


def created(pod: Pod, seconds: int) -> Pod:
    """The pod, created so long ago."""
    metadata = msgspec.structs.replace(pod.metadata, creation_timestamp=NOW - seconds * SECOND)
    return msgspec.structs.replace(pod, metadata=metadata)


@st.composite
def new_pods(draw: st.DrawFn, most: int = 5) -> list[Pod]:
    """Pods that were never tried, some of them created in the same second."""
    number = draw(st.integers(2, most))
    return [
        created(
            make_pod(f"p{index}", cpu=str(draw(st.integers(1, 4))), priority=draw(st.sampled_from([0, 0, 10]))),
            draw(st.sampled_from([5, 5, 6])),
        )
        for index in range(number)
    ]


def orders_of(pods: Sequence[Pod]) -> Iterator[list[Pod]]:
    """Every order of the queue: by priority, then by creation, of which only the second is known."""

    def place(pod: Pod) -> tuple[int, float]:
        assert pod.metadata.creation_timestamp is not None
        return -pod.priority, pod.metadata.creation_timestamp.timestamp()

    groups = [list(group) for _, group in itertools.groupby(sorted(pods, key=place), key=place)]
    for parts in itertools.product(*(itertools.permutations(group) for group in groups)):
        yield list(itertools.chain.from_iterable(parts))


def scheduled_in(cluster: ClusterSnapshot, order: Sequence[Pod]) -> set[str]:
    """The pods that find a node if they are placed one after another."""
    placing = Placing(cluster, SCHEDULER, SCHEDULER.prepare(cluster, now=NOW), NOW)
    return {placed.pod.key for placed in placing.place(order) if placed.branch is not None}


def served(cluster: ClusterSnapshot) -> ServedQueue:
    return explain_pending(AnalysisContext(cluster, SCHEDULER, NOW, at=NOW), draws=DRAWS).served


def outcomes(found: ServedQueue) -> dict[str, TurnOutcome]:
    return {key: turn.outcome for key, turn in found.in_turn.items()}


@LAWS
@given(new_pods(), st.lists(st.integers(2, 5), min_size=1, max_size=2))
def test_every_order_leads_to_what_is_said(pods: list[Pod], sizes: list[int]) -> None:
    nodes = [make_node(f"n{number}", cpu=str(size)) for number, size in enumerate(sizes)]
    cluster = ClusterSnapshot(nodes=nodes, pods=pods)
    found = served(cluster)
    became = outcomes(found)
    certain = {key for key, outcome in became.items() if outcome is TurnOutcome.SCHEDULED}
    pending = {key for key, outcome in became.items() if outcome is TurnOutcome.LEFT_PENDING}
    for order in orders_of(pods):
        scheduled = scheduled_in(cluster, order)
        assert certain <= scheduled
        assert scheduled.isdisjoint(pending)
        assert found.scheduled_min <= len(scheduled) <= found.scheduled_max
        for each in found.open:
            assert each.at_least <= len(scheduled.intersection(each.pods)) <= each.at_most


@LAWS
@given(new_pods(most=6), st.integers(2, 5), st.randoms(use_true_random=False))
def test_the_order_of_the_snapshot_decides_nothing(pods: list[Pod], size: int, source: random.Random) -> None:
    shuffled = list(pods)
    source.shuffle(shuffled)
    nodes = [make_node("n", cpu=str(size))]
    assert outcomes(served(ClusterSnapshot(nodes=nodes, pods=pods))) == outcomes(
        served(ClusterSnapshot(nodes=nodes, pods=shuffled))
    )


@st.composite
def queued_pods(draw: st.DrawFn) -> tuple[list[Pod], list[Event]]:
    """Pods in any state of the queue, with events about some of them."""
    pods, events = [], []
    for index in range(draw(st.integers(1, 6))):
        age = draw(st.sampled_from([2, 8, 90, 400, 4000]))
        pod = created(
            make_pod(f"p{index}", cpu=str(draw(st.integers(1, 6))), priority=draw(st.sampled_from([0, 0, 10]))), age
        )
        if draw(st.booleans()):
            condition = PodCondition(
                type="PodScheduled",
                status="False",
                reason="Unschedulable",
                last_transition_time=NOW - draw(st.integers(0, age)) * SECOND,
            )
            pod = msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, conditions=[condition]))
        if draw(st.booleans()):
            last = NOW - draw(st.integers(0, age)) * SECOND
            series = EventSeries(last) if draw(st.booleans()) else None
            subject = ObjectReference("Pod", pod.metadata.namespace, pod.metadata.name, pod.metadata.uid)
            events.append(Event(reason="FailedScheduling", regarding=subject, event_time=last, series=series))
        pods.append(pod)
    return pods, events


@LAWS
@given(queued_pods(), st.booleans())
def test_pending_and_queue_agree_on_the_order(queued: tuple[list[Pod], list[Event]], is_what_if: bool) -> None:
    pods, events = queued
    low = make_pod("low", node="n", cpu="2", priority=-1)
    cluster = ClusterSnapshot(nodes=[make_node("n", cpu="4")], pods=[low, *pods], events=events, is_what_if=is_what_if)
    context = AnalysisContext(cluster, SCHEDULER, NOW, at=NOW)
    pending = explain_pending(context, draws=DRAWS)
    queue = scheduling_queue(context, [], decode_object)
    assert [item.pod for item in pending.items] == [each.pod for each in queue.items]
    assert [item.position for item in pending.items] == list(range(1, len(pods) + 1))
    assert sorted(pending.served.in_turn) == sorted(pod.key for pod in pending_pods(cluster))


@LAWS
@given(queued_pods(), st.booleans())
def test_what_is_said_adds_up(queued: tuple[list[Pod], list[Event]], is_what_if: bool) -> None:
    pods, events = queued
    low = make_pod("low", node="n", cpu="2", priority=-1)
    cluster = ClusterSnapshot(nodes=[make_node("n", cpu="4")], pods=[low, *pods], events=events, is_what_if=is_what_if)
    found = served(cluster)
    became = outcomes(found)
    certain = {key for key, outcome in became.items() if outcome is TurnOutcome.SCHEDULED}
    undecided = {key for key, outcome in became.items() if outcome is TurnOutcome.OPEN}
    assert len(certain) <= found.scheduled_min <= found.scheduled_max <= len(certain) + len(undecided)
    named = [pod for each in found.open for pod in each.pods]
    assert sorted(named) == sorted(undecided)
    assert sum(each.at_least for each in found.open) <= found.scheduled_min - len(certain)
    assert sum(each.at_most for each in found.open) >= found.scheduled_max - len(certain)
    for each in found.open:
        assert 0 <= each.at_least <= each.at_most <= len(each.pods)
    for key, turn in found.in_turn.items():
        assert bool(turn.nodes) or turn.outcome is not TurnOutcome.SCHEDULED, key
        assert 0 <= turn.scheduled_runs <= found.runs
        assert (turn.scheduled_runs == found.runs) or turn.outcome is not TurnOutcome.SCHEDULED
        assert not turn.scheduled_runs or turn.outcome is not TurnOutcome.LEFT_PENDING
