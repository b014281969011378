"""The reported outcomes of other orders of equal volumes are exactly those of these orders."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.pod import Pod
from kpreempt.model.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Verdict
from kpreempt.verdict.chance import VolumeOutcome
from tests.factories import NOW, make_node, make_pod
from tests.volume_factories import ZONE, make_claim, make_class, make_volume, uses


def outcome_of(verdict: Verdict) -> VolumeOutcome:
    victims = {node: sorted(victim.pod for victim in each) for node, each in verdict.victims.items()}
    return VolumeOutcome(
        verdict.outcome, sorted(verdict.nominated_nodes or verdict.lands_on), victims, verdict.message or verdict.reason
    )


def reported_by(verdict: Verdict) -> list[VolumeOutcome]:
    others = verdict.volume_choices.outcomes if verdict.volume_choices else []
    return [outcome_of(verdict), *others]


def drawn_volume(draw: random.Random, number: int) -> PersistentVolume:
    kept_for = draw.choice((*(f"c{claim}" for claim in range(3)), *[""] * 17))
    return make_volume(
        f"v{number}",
        size=draw.choice(("1Gi", "1Gi", "1Gi", "1Gi", "2Gi")),
        zone=draw.choice(("", "", "", "east", "west")),
        modes=draw.choice((["ReadWriteOnce"], ["ReadWriteOnce", "ReadWriteMany"])),
        labels={"tier": draw.choice(("gold", "silver"))},
        claim_ref=ObjectReference("shop", kept_for) if kept_for else None,
        storage_class_name=draw.choice((*["slow"] * 7, "made")),
    )


def drawn_claim(draw: random.Random, number: int) -> PersistentVolumeClaim:
    claim = make_claim(
        f"c{number}",
        size=draw.choice(("1Gi", "1Gi", "1Gi", "1Gi", "2Gi")),
        modes=["ReadWriteMany" if number and draw.random() < 0.7 else "ReadWriteOnce"],
        storage_class=draw.choice((*["slow"] * 7, "made")),
    )
    selector = draw.choice((LabelSelector(match_labels={"tier": "gold"}), None, None, None, None))
    return msgspec.structs.replace(claim, spec=msgspec.structs.replace(claim.spec, selector=selector))


def drawn_cluster(draw: random.Random) -> ClusterSnapshot:
    """Three nodes, some of them full, and claims that match the same volumes of few sizes."""
    nodes = [make_node(name, cpu="2", labels={ZONE: draw.choice(("east", "west"))}) for name in "abc"]
    running = [
        make_pod(f"low-{node.name}", node=node.name, cpu="2", priority=draw.choice((-5, -5, 5)))
        for node in nodes
        if draw.random() < 0.5
    ]
    return ClusterSnapshot(
        nodes=nodes,
        pods=running,
        persistent_volumes=[drawn_volume(draw, number) for number in range(draw.randint(3, 5))],
        persistent_volume_claims=[drawn_claim(draw, number) for number in range(draw.randint(2, 3))],
        storage_classes=[make_class(), make_class("made", provisioner="csi.example.com", zones=["east"])],
    )


def incoming(cluster: ClusterSnapshot) -> Pod:
    return make_pod("new", cpu="1", volumes=uses(*(claim.metadata.name for claim in cluster.persistent_volume_claims)))


@pytest.mark.sampled(15)
@pytest.mark.parametrize("seed", range(150))
def test_reported_outcomes_are_those_of_all_orders(seed: int) -> None:
    cluster = drawn_cluster(random.Random(seed))
    pod = incoming(cluster)
    scheduler = KubeScheduler(behavior=behavior(gates={"StorageCapacityScoring": seed % 2 == 0}))
    possible: list[VolumeOutcome] = []
    all_reported: list[list[VolumeOutcome]] = []
    for volumes in itertools.permutations(cluster.persistent_volumes):
        ordered = msgspec.structs.replace(cluster, persistent_volumes=list(volumes))
        known = msgspec.structs.replace(ordered, has_scheduler_order=True)
        verdict = scheduler.decide(scheduler.prepare(ordered, now=NOW), pod)
        assert verdict.volume_choices is None or verdict.volume_choices.complete
        assert outcome_of(scheduler.decide(scheduler.prepare(known, now=NOW), pod)) == outcome_of(verdict)
        all_reported.append(reported_by(verdict))
        if outcome_of(verdict) not in possible:
            possible.append(outcome_of(verdict))
    for reported in all_reported:
        assert sorted(map(repr, reported)) == sorted(map(repr, possible))
