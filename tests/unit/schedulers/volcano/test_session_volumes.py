"""Volumes are taken when a task gets room in a session of Volcano, and only then is it seen whether there are any."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.model.affinity import Affinity, NodeAffinity, NodeSelectorTerm, PreferredSchedulingTerm
from kpreempt.model.labels import NodeSelectorRequirement
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.pod import EphemeralVolume, Pod, Volume
from kpreempt.model.storage import CSIDriver, CSIDriverSpec, VolumeNodeAffinity
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.volcano import AttemptOutcome, NodeOutcome
from tests.factories import make_node
from tests.volcano_factories import attempt_of, bound, make_task, play
from tests.volume_factories import DRIVER, ZONE, in_zone, make_claim, make_class, make_volume, uses

EAST, WEST = make_node("a", labels={ZONE: "east"}), make_node("b", labels={ZONE: "west"})
# Filters would refuse some claims before.
NO_FILTERS = {"predicate.NodeVolumeLimitsEnable": False, "predicate.VolumeZoneEnable": False}
NO_VOLUME = "node(s) didn't find available persistent volumes to bind"


def needs(name: str, *claims: str, **fields: Any) -> Pod:
    return make_task(name, volumes=uses(*claims), **fields)


def in_east(**fields: Any) -> dict[str, Any]:
    return {"node_selector": {ZONE: "east"}, **fields}


@pytest.mark.parametrize(
    ("objects", "reason"),
    [
        pytest.param({"persistent_volumes": [make_volume("pv")]}, "", id="a claim that waits finds a volume"),
        pytest.param({}, NO_VOLUME, id="or finds none"),
        pytest.param({"persistent_volumes": [make_volume("pv", zone="west")]}, NO_VOLUME, id="or none within reach"),
        pytest.param(
            {
                "persistent_volume_claims": [make_claim("data", volume="pv")],
                "persistent_volumes": [make_volume("pv", zone="west")],
            },
            "node(s) had volume node affinity conflict",
            id="a bound claim's volume is out of reach",
        ),
        pytest.param(
            {"persistent_volume_claims": [make_claim("data", volume="pv")]},
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            id="a bound claim's volume is gone",
        ),
        pytest.param(
            {"storage_classes": [make_class(binds="Immediate")]},
            "pod has unbound immediate PersistentVolumeClaims",
            id="a claim should have been bound before",
        ),
        pytest.param(
            {"persistent_volume_claims": [make_claim("other")]},
            'error getting PVC "shop/data": could not find v1.PersistentVolumeClaim "shop/data"',
            id="a claim does not exist",
        ),
        pytest.param(
            {"persistent_volume_claims": [make_claim("data", volume="pv", phase="Lost")]},
            "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
            id="that a claim has lost its volume is not looked at",
        ),
        pytest.param({"storage_classes": [make_class(provisioner=DRIVER)]}, "", id="a volume can be made"),
        pytest.param(
            {
                "storage_classes": [make_class(provisioner=DRIVER)],
                "csi_drivers": [CSIDriver(AnnotatedMeta(name=DRIVER), CSIDriverSpec(storage_capacity=True))],
            },
            "",
            id="whether its pool has room is not looked at",
        ),
        pytest.param(
            {"storage_classes": [make_class(provisioner=DRIVER, zones=["west"])]},
            NO_VOLUME,
            id="a volume can be made for other nodes only",
        ),
    ],
)
def test_a_task_with_a_claim(objects: dict[str, Any], reason: str) -> None:
    known = {"persistent_volume_claims": [make_claim("data")], "storage_classes": [make_class()], **objects}
    session = play([EAST], [needs("new", "data")], predicates=NO_FILTERS, **known)
    attempt = attempt_of(session, "new")
    assert attempt.reason == reason
    assert bound(session) == ({} if reason else {"new": "a"})
    assert attempt.outcome is (AttemptOutcome.NO_VOLUMES if reason else AttemptOutcome.ALLOCATED)
    assert [node.outcome for node in attempt.nodes] == [NodeOutcome.NO_VOLUMES if reason else NodeOutcome.ALLOCATED]


def test_without_information_about_volumes_claims_count_as_bound() -> None:
    assert bound(play([EAST], [needs("new", "data")], predicates=NO_FILTERS)) == {"new": "a"}


def test_a_claim_of_an_ephemeral_volume_must_be_the_pods_own() -> None:
    task = make_task("new", volumes=[Volume("scratch", ephemeral=EphemeralVolume())])
    session = play(
        [EAST], [task], predicates=NO_FILTERS, persistent_volume_claims=[make_claim("new-scratch", volume="pv")]
    )
    reason = "PVC shop/new-scratch was not created for pod shop/new (pod is not owner)"
    assert attempt_of(session, "new").reason == reason


def test_no_other_node_is_tried_and_the_next_task_has_its_turn() -> None:
    prefers_west = Affinity(
        node_affinity=NodeAffinity(
            preferred=[PreferredSchedulingTerm(100, NodeSelectorTerm([NodeSelectorRequirement(ZONE, "In", ["west"])]))]
        )
    )
    session = play(
        [EAST, WEST],
        [needs("first", "data", affinity=prefers_west), make_task("second")],
        persistent_volume_claims=[make_claim("data")],
        persistent_volumes=[make_volume("pv", zone="east")],
        storage_classes=[make_class()],
    )
    assert bound(session) == {"second": "a"}
    assert [tried.node for tried in attempt_of(session, "first").nodes] == ["b"]


@pytest.mark.parametrize(
    ("claims", "where"),
    [
        pytest.param(("one", "two"), {"first": "a"}, id="is not there for another claim"),
        pytest.param(("one", "one"), {"first": "a", "second": "a"}, id="is there for the same claim"),
    ],
)
def test_a_volume_that_was_taken(claims: tuple[str, str], where: dict[str, str]) -> None:
    session = play(
        [EAST],
        [needs("first", claims[0]), needs("second", claims[1])],
        persistent_volume_claims=[make_claim("one"), make_claim("two")],
        persistent_volumes=[make_volume("pv")],
        storage_classes=[make_class()],
    )
    assert bound(session) == where


@pytest.mark.parametrize(
    ("zone", "where"),
    [
        pytest.param("east", {"first": "a", "second": "a"}, id="the node that it is made for"),
        pytest.param("west", {"first": "a"}, id="no other node"),
    ],
)
def test_a_volume_that_is_to_be_made_can_be_used_on(zone: str, where: dict[str, str]) -> None:
    session = play(
        [EAST, WEST],
        [needs("first", "data", **in_east()), needs("second", "data", node_selector={ZONE: zone})],
        persistent_volume_claims=[make_claim("data")],
        storage_classes=[make_class(provisioner=DRIVER)],
    )
    assert bound(session) == where


def test_a_statement_that_is_thrown_away_gives_its_volumes_back() -> None:
    session = play(
        [EAST],
        [
            needs("first", "one", job="a"),
            make_task("huge", job="a", cpu="100"),
            *(needs(n, "two", job="b") for n in "xy"),
        ],
        needs=2,
        persistent_volume_claims=[make_claim("one"), make_claim("two")],
        persistent_volumes=[make_volume("pv")],
        storage_classes=[make_class()],
    )
    assert bound(session) == {"x": "a", "y": "a"}


def idle(name: str, *claims: str, **fields: Any) -> Pod:
    return needs(name, *claims, cpu="", **fields)


def test_backfill_goes_on_to_the_next_node() -> None:
    session = play(
        [EAST, WEST],
        [idle("new", "data")],
        actions="backfill",
        persistent_volume_claims=[make_claim("data")],
        persistent_volumes=[make_volume("pv", node_affinity=VolumeNodeAffinity(in_zone("west")))],
        storage_classes=[make_class()],
    )
    assert bound(session) == {"new": "b"}
    assert attempt_of(session, "new").rejected == {"a": NO_VOLUME}


def test_backfill_says_what_volumes_are_lacking() -> None:
    session = play(
        [EAST, WEST],
        [idle("new", "data")],
        actions="backfill",
        persistent_volume_claims=[make_claim("data")],
        storage_classes=[make_class()],
    )
    assert session.final is not None
    message = f"0/2 nodes are unavailable: 2 {NO_VOLUME}."
    assert session.final.fit_errors == {"shop/job": {"shop/new": message}}


@pytest.mark.parametrize(
    ("needed", "given"),
    [
        pytest.param(1, {"first"}, id="a job that is ready keeps its volumes"),
        pytest.param(3, {"first", "second"}, id="one that is not gives them to the next task"),
    ],
)
def test_volumes_of_backfilled_tasks(needed: int, given: set[str]) -> None:
    session = play(
        [EAST],
        [idle("first", "one"), idle("second", "two"), make_task("other", cpu="100")],
        actions="backfill",
        needs=needed,
        persistent_volume_claims=[make_claim("one"), make_claim("two")],
        persistent_volumes=[make_volume("pv")],
        storage_classes=[make_class()],
    )
    assert {task.partition("/")[2] for kind, task, _, _ in session.actions[0].trace if kind == "allocate"} == given


@pytest.mark.parametrize("are_alike", [True, False], ids=["the same to all claims", "of other access modes"])
def test_equal_volumes_are_taken_in_a_random_order_which_is_said_where_it_matters(are_alike: bool) -> None:
    modes = ["ReadWriteOnce", "ReadWriteMany"]
    session = play(
        [EAST],
        [needs("first", "one"), needs("second", "two")],
        persistent_volume_claims=[make_claim("one"), make_claim("two", modes=["ReadWriteMany"])],
        persistent_volumes=[make_volume("both", modes=modes), make_volume("other", modes=modes[: 1 + are_alike])],
        storage_classes=[make_class()],
    )
    assert bound(session) == ({"first": "a", "second": "a"} if are_alike else {"first": "a"})
    reported = [each for each in session.assumptions if each.field == "spec.volumes"]
    assert reported == (
        []
        if are_alike
        else [
            Assumption(
                "Pod shop/first",
                "spec.volumes",
                "its claim shop/one binds one of the tied volumes both, other on a; the scheduler picks one at"
                " random (here: the first in the input), which may affect what is left for other claims",
                AssumptionKind.UNCERTAIN,
            )
        ]
    )
