"""Which preempted pod a pod replaces, and what evicts what again and again, as far as events show it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.evictions.workloads import PastPreemptions
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.event import Event
from kpreempt.model.pod import Pod, PodSpec
from kpreempt.model.policy import PriorityClass
from kpreempt.model.workloads import ReplicaSet
from kpreempt.report.preemptions import preempted, replaces

START = datetime(2026, 11, 20, 12, 0, tzinfo=UTC)
NOW = START + timedelta(minutes=3)


def a_pod(name: str, seconds: float, *, kind: str = "ReplicaSet", owner: str = "web", priority: int = 0) -> Pod:
    return msgspec.convert(
        {
            "metadata": {
                "namespace": "shop",
                "name": name,
                "uid": f"uid-{name}-{seconds}",
                "creationTimestamp": (START + timedelta(seconds=seconds)).isoformat(),
                "ownerReferences": [{"kind": kind, "name": owner, "uid": "o", "controller": True}] if owner else [],
            },
            "spec": {"priority": priority},
        },
        Pod,
    )


def of_daemon_set(name: str, seconds: float, node: str) -> Pod:
    pod = a_pod(name, seconds, kind="DaemonSet", owner="agent")
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    terms = {"nodeSelectorTerms": [{"matchFields": [field]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}
    spec = msgspec.convert({"affinity": affinity}, PodSpec)
    return msgspec.structs.replace(pod, spec=spec)


URGENT = a_pod("urgent", -1, owner="", priority=10)


def evicted(victim: str, seconds: float, preemptor: Pod = URGENT, **changes: Any) -> Event:
    return msgspec.convert(
        {
            "metadata": {"namespace": "shop", "name": f"{victim}.{seconds}"},
            "reason": "Preempted",
            "involvedObject": {"kind": "Pod", "namespace": "shop", "name": victim, "uid": f"uid-{victim}"},
            "message": f"Preempted by pod {preemptor.metadata.uid} on node n1",
            "eventTime": (START + timedelta(seconds=seconds)).isoformat(),
            **changes,
        },
        Event,
    )


def words(pods: list[Pod], events: list[Event]) -> str:
    found = PastPreemptions(ClusterSnapshot(pods=[URGENT, *pods], events=events)).replaced_by(pods[0])
    return replaces(found, NOW) if found is not None else ""


OLD, OTHER, THIRD = "web-28pvm", "web-mc47f", "web-t6qbw"


@pytest.mark.parametrize(
    ("pods", "events", "expected"),
    [
        pytest.param(
            [a_pod("web-7tt69", 0)],
            [evicted(OLD, 0.5)],
            "replaces web-28pvm, preempted 2m59s ago by urgent",
            id="a ReplicaSet's pod that was created when one was evicted",
        ),
        pytest.param(
            [a_pod("web-7tt69", 30)],
            [evicted(OLD, 0.5)],
            "probably replaces web-28pvm, preempted 2m59s ago by urgent",
            id="one that was created half a minute later may have another reason",
        ),
        pytest.param([a_pod("web-7tt69", 90)], [evicted(OLD, 0.5)], "", id="one that was created much later"),
        pytest.param([a_pod("web-7tt69", -5)], [evicted(OLD, 0.5)], "", id="one that existed before"),
        pytest.param(
            [a_pod("web-7tt69", 1), a_pod("web-hg72z", 1)],
            [evicted(OLD, 0.5), evicted(OTHER, 0.7)],
            "replaces one of 2 pods of ReplicaSet web preempted 2m59s ago by urgent",
            id="one of two that were created when two were evicted",
        ),
        pytest.param(
            [a_pod("web-7tt69", 1), a_pod("web-hg72z", 1)],
            [evicted(OLD, 0.5)],
            "probably replaces web-28pvm, preempted 2m59s ago by urgent",
            id="one of two that were created when only one was evicted",
        ),
        pytest.param(
            [a_pod("web-7tt69", 40), a_pod("web-hg72z", 0)],
            [evicted(OLD, 0.5), evicted(OTHER, 40.2)],
            "replaces web-mc47f, preempted 2m19s ago by urgent",
            id="evictions at different times are told apart",
        ),
        pytest.param(
            [a_pod("web-7tt69", 1)],
            [evicted("api-28pvm", 0.5)],
            "",
            id="a pod of another workload",
        ),
        pytest.param(
            [a_pod("web-7tt69", 1)],
            [evicted(OLD, 0.5), evicted(OLD, 0.9, a_pod("later", 0))],
            "replaces web-28pvm, preempted 2m59s ago by urgent",
            id="a pod that two others evicted was evicted by the first",
        ),
        pytest.param(
            [a_pod("db-0", 50, kind="StatefulSet", owner="db")],
            [evicted("db-0", 0.5)],
            "replaces db-0, preempted 2m59s ago by urgent",
            id="a StatefulSet's pod has the name of the one before, however late it comes",
        ),
        pytest.param(
            [a_pod("db-1", 1, kind="StatefulSet", owner="db")],
            [evicted("db-0", 0.5)],
            "",
            id="a StatefulSet's other pod",
        ),
        pytest.param(
            [a_pod("web-7tt69", 1)],
            [evicted(OLD, 0.5, message="Preempted by a pod on node n1")],
            "replaces web-28pvm, preempted 2m59s ago",
            id="an old event does not name the preemptor",
        ),
        pytest.param(
            [of_daemon_set("agent-7tt69", 100, "n1"), of_daemon_set("agent-hg72z", 100, "n2")],
            [evicted("agent-28pvm", 0.5), evicted("agent-mc47f", 1, message="Preempted by pod x on node n2")],
            "replaces agent-28pvm, preempted 2m59s ago by urgent",
            id="a DaemonSet's pod replaces the one on its node, however late it comes",
        ),
        pytest.param([a_pod("alone", 1, owner="")], [evicted("alone-28pvm", 0.5)], "", id="a pod without a controller"),
    ],
)
def test_a_pod_names_the_preempted_pod_that_it_replaces(pods: list[Pod], events: list[Event], expected: str) -> None:
    assert words(pods, events) == expected


def test_an_inversion_needs_replacements_that_are_more_important_than_the_preemptor() -> None:
    events = [evicted(OLD, 0.5), evicted(OTHER, 0.6)]
    for priority, expected in ((9, None), (10, None), (11, 11)):
        pods = [URGENT, a_pod("web-7tt69", 1, priority=priority), a_pod("web-hg72z", -60, priority=99)]
        (pair,) = PastPreemptions(ClusterSnapshot(pods=pods, events=events)).between([URGENT])
        assert (pair.preemptor, pair.victim, pair.pods) == ("Pod shop/urgent", "ReplicaSet shop/web", 2)
        assert (pair.inversion.priority if pair.inversion is not None else None) == expected


def test_only_repeated_preemptions_are_listed_unless_they_were_in_vain() -> None:
    cluster = ClusterSnapshot(pods=[URGENT, a_pod("web-7tt69", 1)], events=[evicted(OLD, 0.5)])
    assert PastPreemptions(cluster).between([URGENT], least=2) == []
    again = msgspec.structs.replace(cluster, events=[*cluster.events, evicted(THIRD, 100)])
    (pair,) = PastPreemptions(again).between([URGENT], least=2)
    assert (pair.pods, pair.since, pair.until) == (
        2,
        START + timedelta(seconds=0.5),
        START + timedelta(seconds=100),
    )


def named(pod: Pod) -> Event:
    """An event that has the name of a pod that is gone."""
    about = {"kind": "Pod", "namespace": "shop", "name": pod.metadata.name, "uid": pod.metadata.uid}
    return msgspec.convert({"reason": "FailedScheduling", "involvedObject": about}, Event)


GONE = a_pod("api-2k4wd", -1, owner="api")
CLASS = msgspec.convert({"metadata": {"name": "tmpl", "creationTimestamp": START.isoformat()}}, PriorityClass)
WEB = msgspec.convert(
    {"metadata": {"namespace": "shop", "name": "web", "creationTimestamp": (START - timedelta(hours=1)).isoformat()}},
    ReplicaSet,
)


@pytest.mark.parametrize(
    ("others", "events", "classes", "expected"),
    [
        pytest.param(
            [a_pod("api-z8fdl", 5, owner="api", priority=7)],
            [named(GONE), evicted(OLD, 0.5, GONE)],
            [],
            "ReplicaSet api (priority 7, as its other pods; the preemptors are gone) preempted 1 pod of ReplicaSet web "
            "2m59s ago; their replacements have priority 11 (PriorityClass tmpl)",
            id="the preemptor's controller has other pods",
        ),
        pytest.param(
            [a_pod("api-z8fdl", 5, owner="api", priority=7), a_pod("api-xxnnc", 5, owner="api", priority=12)],
            [named(GONE), evicted(OLD, 0.5, GONE)],
            [],
            "",
            id="they have different priorities",
        ),
        pytest.param(
            [],
            [named(GONE), evicted(OLD, 0.5, GONE)],
            [CLASS],
            "Pod api-2k4wd preempted 1 pod of ReplicaSet web 2m59s ago; their replacements have priority 11 (their "
            "PriorityClass tmpl is younger than the victims); the preemptors are gone, so it is not known whether that "
            "is higher than theirs",
            id="nothing says what the preemptor's priority was, but the victims had another",
        ),
        pytest.param(
            [],
            [evicted(OLD, 0.5, GONE)],
            [CLASS],
            "Pod uid-api-2k4wd--1 preempted 1 pod of ReplicaSet shop/web 2m59s ago; their replacements have priority "
            "11 (their PriorityClass tmpl is younger than the victims); the preemptors are gone, so it is not known "
            "whether that is higher than theirs",
            id="only the UID of the preemptor is known",
        ),
        pytest.param([], [named(GONE), evicted(OLD, 0.5, GONE)], [], "", id="nothing suggests an inversion"),
    ],
)
def test_an_inversion_whose_preemptors_are_gone_says_what_is_known(
    others: list[Pod], events: list[Event], classes: list[PriorityClass], expected: str
) -> None:
    replacement = a_pod("web-7tt69", 1, priority=11)
    spec = msgspec.structs.replace(replacement.spec, priority_class_name="tmpl")
    pods = [msgspec.structs.replace(replacement, spec=spec), *others]
    cluster = ClusterSnapshot(pods=pods, events=events, priority_classes=classes, replica_sets=[WEB])
    found = PastPreemptions(cluster).between(pods, least=2)
    assert [preempted(each, NOW) for each in found] == ([expected] if expected else [])


def test_an_inversion_counts_preemptors_of_unknown_priority() -> None:
    known = a_pod("api-z8fdl", -1, owner="api", priority=7)
    pods = [known, a_pod("api-xxnnc", 5, owner="api", priority=12), a_pod("web-7tt69", 1, priority=11)]
    events = [named(GONE), evicted(OLD, 0.5, known), evicted(OTHER, 0.6, GONE)]
    (found,) = PastPreemptions(ClusterSnapshot(pods=pods, events=events)).between(pods)
    assert preempted(found, NOW) == (
        "ReplicaSet api (priority 7) preempted 2 pods of ReplicaSet web 2m59s ago; their replacements have priority "
        "11; 1 eviction had a preemptor that is gone, of unknown priority"
    )
