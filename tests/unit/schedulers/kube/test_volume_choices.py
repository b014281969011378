"""Claims that compete for equal volumes: what becomes of the pod in another order than that of the input."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Pod
from kpreempt.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Assumption, AssumptionKind, Outcome, Verdict
from kpreempt.verdict.chance import VolumeChoice, VolumeChoices, VolumeFit, VolumeOutcome
from tests.factories import NOW, decide, make_node, make_pod
from tests.volume_factories import DRIVER, ZONE, make_claim, make_class, make_volume, uses

ONCE, MANY = "ReadWriteOnce", "ReadWriteMany"
# The first takes either of the volumes, the second only that of many writers.
CLAIMS = [make_claim("own", modes=[ONCE]), make_claim("shared", modes=[MANY])]
PLAIN, BOTH = make_volume("plain", modes=[ONCE]), make_volume("both", modes=[ONCE, MANY])


def cluster(volumes: Sequence[PersistentVolume], nodes: Sequence[str] = ("a",), **more: Any) -> ClusterSnapshot:
    more.setdefault("storage_classes", [make_class()])
    more.setdefault("persistent_volume_claims", CLAIMS)
    made = [make_node(name, cpu="2", labels={ZONE: name}) for name in nodes]
    return ClusterSnapshot(nodes=made, persistent_volumes=list(volumes), **more)


def incoming(claims: Sequence[PersistentVolumeClaim] = CLAIMS, **fields: Any) -> Pod:
    return make_pod("new", volumes=uses(*(claim.metadata.name for claim in claims)), **fields)


def choices_of(verdict: Verdict) -> VolumeChoices:
    assert verdict.volume_choices is not None
    return verdict.volume_choices


def in_zone(zone: str) -> list[PersistentVolume]:
    return [
        make_volume(f"plain-{zone}", modes=[ONCE], zone=zone),
        make_volume(f"both-{zone}", modes=[ONCE, MANY], zone=zone),
    ]


def test_the_verdict_is_that_of_the_input_and_the_other_outcome_is_reported() -> None:
    verdict = decide(cluster([PLAIN, BOTH]), incoming())
    assert verdict.outcome is Outcome.LANDS
    reported = choices_of(verdict)
    assert reported.nodes == [VolumeChoice("a", ["shop/own", "shop/shared"], ["plain", "both"], VolumeFit.SOME_ORDERS)]
    assert [(each.outcome, each.nodes) for each in reported.outcomes] == [(Outcome.UNSCHEDULABLE, [])]
    assert (reported.complete, reported.uncertain) == (True, True)
    assert verdict.assumptions == [
        Assumption(
            "Pod shop/new",
            "spec.volumes",
            "on a the claims shop/own and shop/shared compete for the volumes plain and both; the scheduler tries tied"
            " volumes in random order; here, it is the input order, and in another order the pod stays pending",
            AssumptionKind.UNCERTAIN,
        )
    ]
    reverse = decide(cluster([BOTH, PLAIN]), incoming())
    assert reverse.outcome is Outcome.UNSCHEDULABLE
    assert choices_of(reverse).outcomes == [VolumeOutcome(Outcome.LANDS, ["a"])]


@pytest.mark.parametrize(
    "volumes",
    [
        pytest.param([BOTH, make_volume("both-2", modes=[ONCE, MANY])], id="volumes that are the same to all"),
        pytest.param([make_volume("small", modes=[ONCE]), make_volume("large", size="2Gi", modes=[MANY])], id="sizes"),
        pytest.param([PLAIN], id="nothing to choose from"),
        pytest.param([PLAIN, BOTH, make_volume("both-2", modes=[ONCE, MANY])], id="enough for every order"),
        pytest.param([], id="no volumes"),
    ],
)
def test_nothing_is_reported_where_the_order_makes_no_difference(volumes: list[PersistentVolume]) -> None:
    assert decide(cluster(volumes), incoming()).volume_choices is None


def test_a_class_that_makes_volumes_leaves_nothing_to_the_order() -> None:
    made = cluster([PLAIN, BOTH], storage_classes=[make_class(provisioner=DRIVER)])
    assert decide(made, incoming()).volume_choices is None


def test_volumes_that_are_both_kept_for_one_claim() -> None:
    kept = ObjectReference("shop", "own")
    volumes = [make_volume("east", zone="a", claim_ref=kept), make_volume("west", zone="b", claim_ref=kept)]
    verdict = decide(cluster(volumes, "ab", persistent_volume_claims=CLAIMS[:1]), incoming(CLAIMS[:1]))
    assert verdict.lands_on == ["a"]
    # Whichever comes first is the only choice, also for nodes that do not reach it.
    assert choices_of(verdict).outcomes == [VolumeOutcome(Outcome.LANDS, ["b"])]


def test_one_order_holds_on_all_nodes() -> None:
    verdict = decide(cluster([PLAIN, BOTH], "abc"), incoming())
    # All of the nodes or none, and not some of them.
    assert sorted(verdict.lands_on) == ["a", "b", "c"]
    assert [each.nodes for each in choices_of(verdict).outcomes] == [[]]


def test_each_node_has_volumes_of_its_own() -> None:
    verdict = decide(cluster([*in_zone("a"), *in_zone("b")], "ab"), incoming())
    assert sorted(verdict.lands_on) == ["a", "b"]
    assert sorted(each.nodes for each in choices_of(verdict).outcomes) == [[], ["a"], ["b"]]


def test_a_node_that_loses_anyway_leaves_the_pod_certain() -> None:
    sure = make_volume("spare", modes=[MANY], zone="b")
    busy = make_pod("busy", node="a", cpu="1500m")
    verdict = decide(cluster([*in_zone("a"), *in_zone("b"), sure], "ab", pods=[busy]), incoming())
    assert verdict.lands_on == ["b"]
    reported = choices_of(verdict)
    assert ([each.node for each in reported.nodes], reported.outcomes, reported.uncertain) == (["a"], [], False)
    assert verdict.assumptions[-1].kind is AssumptionKind.INFORMATIONAL


def test_the_order_decides_in_the_dry_run() -> None:
    low = [make_pod(f"low-{node}", node=node, cpu="2", priority=priority) for node, priority in (("a", -5), ("b", -4))]
    volumes = [*in_zone("a"), make_volume("w1", modes=[ONCE], zone="b"), make_volume("w2", modes=[MANY], zone="b")]
    verdict = decide(cluster(volumes, "ab", pods=low), incoming(cpu="1"))
    assert verdict.nominated_nodes == ["a"]
    outcome = choices_of(verdict).outcomes[0]
    assert (outcome.outcome, outcome.nodes, outcome.victims) == (Outcome.PREEMPTS, ["b"], {"b": ["shop/low-b"]})
    assert [each.node for each in choices_of(verdict).nodes] == ["a"]


def test_nodes_that_were_rejected_before_are_not_reported() -> None:
    verdict = decide(cluster([PLAIN, BOTH], "ab"), incoming(node_selector={ZONE: "a"}))
    assert [each.node for each in choices_of(verdict).nodes] == ["a"]


def test_beyond_the_bound_the_extremes_are_gone_through_and_it_is_said() -> None:
    names = [f"n{number}" for number in range(8)]
    volumes = [volume for name in names for volume in in_zone(name)]
    reported = choices_of(decide(cluster(volumes, names), incoming()))
    assert len(reported.nodes) == 8
    assert (reported.complete, reported.uncertain) == (False, True)
    assert {tuple(each.nodes) for each in reported.outcomes} >= {
        (),
        *(tuple(n for n in names if n != o) for o in names),
    }


def test_too_many_ways_to_choose_leave_a_node_unknown() -> None:
    # Every claim has a volume more and one less than the claim before it.
    claims = [make_claim(f"c{number:02}", modes=[f"mode-{number}"]) for number in range(12)]
    volumes = [
        make_volume(
            f"v{number:02}", modes=[f"mode-{each}" for each in range(12) if (number >> each % 5) & 1 or each < 8]
        )
        for number in range(32)
    ]
    verdict = decide(cluster(volumes, persistent_volume_claims=claims), incoming(claims))
    reported = choices_of(verdict)
    assert [each.fits for each in reported.nodes] == [VolumeFit.UNKNOWN]
    assert (reported.complete, reported.uncertain) == (False, True)
    assert verdict.assumptions[-1].kind is AssumptionKind.UNCERTAIN
    assert "not all orders were tried" in verdict.assumptions[-1].message


def test_the_order_decides_what_storage_is_rated() -> None:
    kept = ObjectReference("shop", "own")
    volumes = [make_volume(name, size=size, claim_ref=kept) for name, size in (("tight", "1Gi"), ("wide", "9Gi"))]
    snapshot = cluster(volumes, persistent_volume_claims=CLAIMS[:1])
    scheduler = KubeScheduler(behavior=behavior(gates={"StorageCapacityScoring": True}))
    reported = choices_of(scheduler.decide(scheduler.prepare(snapshot, now=NOW), incoming(CLAIMS[:1])))
    assert [each.fits for each in reported.nodes] == [VolumeFit.EVERY_ORDER]
    # With one node there is no choice.
    assert not reported.uncertain
