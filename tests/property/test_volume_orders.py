"""What is told of other orders of equal volumes is what these orders come to, and nothing else."""

from __future__ import annotations

import itertools
import random

import msgspec
import pytest

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.schedulers.kube import KubeScheduler
from kpreempt.verdict import Verdict
from kpreempt.verdict.volume_choices import VolumeOutcome
from tests.factories import NOW, make_node, make_pod
from tests.volume_factories import ZONE, make_claim, make_class, make_volume, uses

MODES = ("ReadWriteOnce", "ReadWriteMany", "ReadOnlyMany")


def outcome_of(verdict: Verdict) -> VolumeOutcome:
    victims = {node: sorted(victim.pod for victim in each) for node, each in verdict.victims.items()}
    return VolumeOutcome(
        verdict.outcome, sorted(verdict.nominated_nodes or verdict.lands_on), victims, verdict.message or verdict.reason
    )


def told_by(verdict: Verdict) -> list[VolumeOutcome]:
    others = verdict.volume_choices.outcomes if verdict.volume_choices else []
    return [outcome_of(verdict), *others]


def drawn_cluster(draw: random.Random) -> ClusterSnapshot:
    """Three nodes, some of them full, and claims for volumes of few sizes."""
    nodes = [make_node(name, cpu="2", labels={ZONE: draw.choice(("east", "west"))}) for name in "abc"]
    running = [
        make_pod(f"low-{node.name}", node=node.name, cpu="2", priority=draw.choice((-5, -5, 5)))
        for node in nodes
        if draw.random() < 0.5
    ]
    volumes = [
        make_volume(
            f"v{number}",
            size=draw.choice(("1Gi", "1Gi", "1Gi", "2Gi")),
            zone=draw.choice(("", "east", "west")),
            modes=draw.sample(MODES, draw.randint(1, 3)),
            labels={"tier": draw.choice(("gold", "silver"))},
            storage_class_name=draw.choice(("slow", "slow", "slow", "made")),
        )
        for number in range(draw.randint(2, 5))
    ]
    claims = [
        make_claim(
            f"c{number}",
            size=draw.choice(("1Gi", "1Gi", "2Gi")),
            modes=[draw.choice(MODES)],
            storage_class=draw.choice(("slow", "slow", "slow", "made")),
        )
        for number in range(draw.randint(2, 4))
    ]
    classes = [make_class(), make_class("made", provisioner="csi.example.com", zones=["east"])]
    return ClusterSnapshot(
        nodes=nodes,
        pods=running,
        persistent_volumes=volumes,
        persistent_volume_claims=claims,
        storage_classes=classes,
    )


@pytest.mark.parametrize("seed", range(150))
def test_the_outcomes_told_are_those_of_all_orders_and_the_same_from_each(seed: int) -> None:
    cluster = drawn_cluster(random.Random(seed))
    pod = make_pod("new", cpu="1", volumes=uses(*(claim.metadata.name for claim in cluster.persistent_volume_claims)))
    scheduler = KubeScheduler()
    possible: list[VolumeOutcome] = []
    all_told: list[list[VolumeOutcome]] = []
    for volumes in itertools.permutations(cluster.persistent_volumes):
        prepared = scheduler.prepare(msgspec.structs.replace(cluster, persistent_volumes=list(volumes)), now=NOW)
        verdict = scheduler.decide(prepared, pod)
        assert verdict.volume_choices is None or verdict.volume_choices.complete
        assert outcome_of(scheduler.decide(prepared, pod, order_is_known=True)) == outcome_of(verdict)
        all_told.append(told_by(verdict))
        if outcome_of(verdict) not in possible:
            possible.append(outcome_of(verdict))
    for told in all_told:
        assert sorted(map(repr, told)) == sorted(map(repr, possible))
