"""The preemptor of a pod, from events of both APIs and all schedulers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.analysis.evictions.queries import evictions_of_pod as who_evicted
from kpreempt.analysis.preempted_by import PreemptedBy, read_preempted, reconstruct
from kpreempt.errors import NotFoundError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event, ObjectReference
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.snapshot.load import cluster_from_json
from kpreempt.verdict.who_evicted import EvictionsOfPod, Evidence, PodPhase, Preemption, ReconstructionResult
from tests.factories import NOW, make_budget, make_node, make_pod

UID = "8f9c2f0e-2a7b-4f7e-9d51-6f0d9c1b7a11"


def preemptions_of(answer: EvictionsOfPod) -> list[Preemption]:
    return [each.preemption for each in answer.items if each.preemption is not None]


def evicted(name: str, note: str, **parts: Any) -> Event:
    subject = ObjectReference("Pod", "shop", name, parts.pop("uid", f"uid-shop-{name}"))
    return Event(reason="Preempted", regarding=subject, note=note, event_time=parts.pop("at", NOW), **parts)


@pytest.mark.parametrize(
    ("note", "by"),
    [
        pytest.param(f"Preempted by pod {UID} on node node-a", PreemptedBy(uid=UID, node="node-a"), id="1.36"),
        pytest.param(
            f"Preempted by pod {UID} on node node-a (in kube-scheduler memory).",
            PreemptedBy(uid=UID, node="node-a"),
            id="1.36, before the victim was bound",
        ),
        pytest.param(
            f"Preempted by podgroup {UID} on node cluster",
            PreemptedBy(uid=UID, node="cluster", is_pod_group=True),
            id="1.36, for a pod group",
        ),
        pytest.param("Preempted by a pod on node node-a", PreemptedBy(node="node-a"), id="older, naming nobody"),
        pytest.param(
            "Preempted by shop/api on node node-a",
            PreemptedBy(namespace="shop", name="api", node="node-a"),
            id="the oldest, by name",
        ),
        pytest.param("Evicted for reasons", PreemptedBy(), id="other words are not understood"),
    ],
)
def test_what_schedulers_wrote(note: str, by: PreemptedBy) -> None:
    assert read_preempted(evicted("low", note)) == by


def test_the_related_object_gives_the_name_that_the_words_do_not() -> None:
    related = ObjectReference("Pod", "shop", "api", UID)
    found = read_preempted(evicted("low", f"Preempted by pod {UID} on node node-a", related=related))
    assert (found.namespace, found.name, found.uid) == ("shop", "api", UID)


def test_a_preemptor_that_is_gone_is_named_by_any_event_with_its_uid() -> None:
    failed = Event(reason="FailedScheduling", regarding=ObjectReference("Pod", "shop", "api", UID), event_time=NOW)
    other = Event(reason="FailedScheduling", regarding=ObjectReference("Node", "", "node-a", UID), event_time=NOW)
    event = evicted("low", f"Preempted by pod {UID} on node node-a")
    preemptor = preemptions_of(who_evicted(ClusterSnapshot(events=[event, other, failed]), "shop", "low"))[0].preemptor
    assert preemptor is not None
    assert (preemptor.pod, preemptor.uid, preemptor.phase) == ("shop/api", UID, PodPhase.NOT_FOUND)


@pytest.mark.parametrize(
    "shape",
    [
        pytest.param(
            {"apiVersion": "events.k8s.io/v1", "regarding": {}, "note": "", "eventTime": "2026-11-21T00:00:00.000000Z"},
            id="events.k8s.io/v1",
        ),
        pytest.param(
            {"apiVersion": "v1", "involvedObject": {}, "message": "", "lastTimestamp": "2026-11-21T00:00:00Z"},
            id="v1",
        ),
        pytest.param(
            {
                "apiVersion": "v1",
                "involvedObject": {},
                "message": "",
                "lastTimestamp": None,
                "eventTime": "2026-11-20T00:00:00.000000Z",
                "series": {"count": 2, "lastObservedTime": "2026-11-21T00:00:00.000000Z"},
            },
            id="v1 of an event that went on",
        ),
    ],
)
def test_events_of_both_apis_are_read_and_all_others_left(shape: dict[str, Any]) -> None:
    subject = {"kind": "Pod", "namespace": "shop", "name": "low", "uid": "uid-shop-low"}
    words = f"Preempted by pod {UID} on node node-a"
    filled = {
        **shape,
        **{key: subject for key in ("regarding", "involvedObject") if key in shape},
        **{key: words for key in ("note", "message") if key in shape},
    }
    kept = {"kind": "Event", "metadata": {"name": "e", "namespace": "shop"}, "reason": "Preempted", **filled}
    other = {**kept, "metadata": {"name": "f", "namespace": "shop"}, "reason": "Pulled", "lastTimestamp": "nonsense"}
    cluster = cluster_from_json([json.dumps(each).encode() for each in (kept, other)], "here")
    assert len(cluster.events) == 1
    assert cluster.skipped == {"Event": 1}
    answer = who_evicted(cluster, "shop", "low")
    assert preemptions_of(answer)[0].at == NOW
    assert preemptions_of(answer)[0].preemptor is not None
    assert preemptions_of(answer)[0].preemptor.uid == UID


API = make_pod("api", cpu="2", priority=1000, nominated="node-a")
LOW = make_pod("low", node="node-a", cpu="1", priority=1, labels={"app": "low"})
BY_API = evicted("low", "Preempted by pod uid-shop-api on node node-a")


def test_a_victim_that_is_gone_is_known_by_its_event_and_its_preemptor_by_uid() -> None:
    answer = who_evicted(ClusterSnapshot(pods=[API], events=[BY_API]), "shop", "low")
    preemption = preemptions_of(answer)[0]
    assert (answer.victim.phase, preemption.evidence, preemption.node) == (PodPhase.NOT_FOUND, Evidence.EVENT, "node-a")
    assert preemption.preemptor is not None
    assert (preemption.preemptor.pod, preemption.preemptor.phase) == ("shop/api", PodPhase.PENDING)
    assert preemption.preemptor.nominated_node_name == "node-a"


def test_a_preemptor_that_is_gone_too_is_its_uid_only() -> None:
    preemptor = preemptions_of(who_evicted(ClusterSnapshot(events=[BY_API]), "shop", "low"))[0].preemptor
    assert preemptor is not None
    assert (preemptor.pod, preemptor.uid, preemptor.phase) == ("", "uid-shop-api", PodPhase.UNKNOWN)


def test_other_victims_of_the_same_preemptor_are_reported() -> None:
    other = evicted("other", BY_API.note)
    elsewhere = evicted("third", "Preempted by pod uid-shop-web on node node-a")
    answer = who_evicted(ClusterSnapshot(events=[BY_API, other, elsewhere]), "shop", "low")
    assert preemptions_of(answer)[0].other_victims == ["shop/other"]


def test_without_an_event_the_pods_own_condition_speaks_and_nominated_pods_are_suspects() -> None:
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    leaving = msgspec.structs.replace(LOW, status=msgspec.structs.replace(LOW.status, conditions=[condition]))
    answer = who_evicted(ClusterSnapshot(pods=[leaving, API]), "shop", "low")
    assert [each.evidence for each in preemptions_of(answer)] == [Evidence.CONDITION]
    assert [each.pod for each in preemptions_of(answer)[0].possible_preemptors] == ["shop/api"]
    assert not answer.sources.has_events


def test_a_pod_of_the_same_name_that_came_after_the_victim_is_not_taken_for_it() -> None:
    condition = PodCondition(type="DisruptionTarget", status="True", reason="PreemptionByScheduler")
    again = msgspec.structs.replace(
        LOW,
        metadata=msgspec.structs.replace(LOW.metadata, uid="second"),
        status=msgspec.structs.replace(LOW.status, conditions=[condition]),
    )
    answer = who_evicted(ClusterSnapshot(pods=[again, API], events=[BY_API]), "shop", "low")
    assert [each.evidence for each in preemptions_of(answer)] == [Evidence.CONDITION, Evidence.EVENT]


def test_a_pod_of_which_nothing_says_that_it_was_preempted_was_not() -> None:
    assert preemptions_of(who_evicted(ClusterSnapshot(pods=[LOW]), "shop", "low")) == []


@pytest.mark.parametrize(
    ("events", "why"),
    [
        pytest.param([], "the input has no events", id="no events at all"),
        pytest.param([BY_API], "keep events for an hour", id="events, but none about it"),
    ],
)
def test_a_pod_that_nothing_tells_of_is_not_found(events: list[Event], why: str) -> None:
    with pytest.raises(NotFoundError, match=why):
        who_evicted(ClusterSnapshot(events=events), "shop", "lwo")


def before(*pods: Pod, cpu: str = "2") -> ClusterSnapshot:
    budgets = [make_budget("low", {"app": "low"}, 0)]
    return ClusterSnapshot(nodes=[make_node("node-a", cpu=cpu)], pods=list(pods), pod_disruption_budgets=budgets)


@pytest.mark.parametrize(
    ("earlier", "result"),
    [
        pytest.param(before(LOW, API), ReconstructionResult.CONFIRMED, id="it evicts the victim there"),
        pytest.param(before(LOW), ReconstructionResult.CONFIRMED, id="it was not there yet and is laid over"),
        pytest.param(before(API), ReconstructionResult.NO_VICTIM, id="the victim was not there"),
        pytest.param(before(LOW, API, cpu="8"), ReconstructionResult.NO_PREEMPTION, id="there was room"),
        pytest.param(
            before(LOW, make_pod("cheap", node="node-a", cpu="1"), cpu="3"),
            ReconstructionResult.OTHER_VICTIMS,
            id="another pod goes there",
        ),
    ],
)
def test_an_eviction_is_reconstructed(earlier: ClusterSnapshot, result: ReconstructionResult) -> None:
    cluster = ClusterSnapshot(pods=[API], events=[BY_API])
    answer = reconstruct(who_evicted(cluster, "shop", "low"), cluster, earlier, scheduler_for(), now=NOW)
    found = preemptions_of(answer)[0].reconstruction
    assert found is not None
    assert found.result is result


def test_the_reconstruction_says_why_and_what_the_budget_said() -> None:
    cluster = ClusterSnapshot(pods=[API], events=[BY_API])
    answer = reconstruct(who_evicted(cluster, "shop", "low"), cluster, before(LOW), scheduler_for(), now=NOW)
    found = preemptions_of(answer)[0].reconstruction
    assert found is not None
    assert found.is_preemptor_overlaid
    assert found.step is not None
    assert not found.step.is_reprieved
    assert [(use.budget, use.remaining) for use in found.step.budgets] == [("shop/low", -1)]
    assert found.rejection is not None
    assert found.rejection.message == "Insufficient cpu"


def test_a_preemptor_that_is_nowhere_is_said_to_be() -> None:
    cluster = ClusterSnapshot(events=[BY_API])
    answer = reconstruct(who_evicted(cluster, "shop", "low"), cluster, before(LOW), scheduler_for(), now=NOW)
    assert preemptions_of(answer)[0].reconstruction is not None
    assert preemptions_of(answer)[0].reconstruction.result is ReconstructionResult.NO_PREEMPTOR
