"""What 1.8 and 1.13 decide where they differ, from each other and from today, and what switches them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import pytest

from kpreempt.analysis.algorithms import scheduler_for
from kpreempt.errors import ConfigurationError, UsageError
from kpreempt.model.affinity import Affinity, PodAffinityTerm, PodAntiAffinity
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.node import NodeCondition
from kpreempt.model.pod import (
    Container,
    ContainerPort,
    PersistentVolumeClaimVolume,
    Pod,
    PodAnnotations,
    ResourceRequirements,
    Volume,
)
from kpreempt.model.quantity import quantity
from kpreempt.model.storage import PersistentVolumeClaim
from kpreempt.scheduler_table import ALL_ALGORITHMS
from kpreempt.schedulers.legacy.base.extenders import Filtered
from kpreempt.schedulers.legacy.base.node_info import NodeInfo
from kpreempt.schedulers.legacy.base.predicates import LegacyError, Victims
from kpreempt.schedulers.legacy.factory import LegacyScheduler
from kpreempt.schedulers.legacy.v1_8 import Version18
from kpreempt.schedulers.legacy.v1_13 import Version113
from kpreempt.verdict import Effect, Outcome, Verdict
from tests.factories import NOW, make_budget, make_node, make_pod

OLD = ("kube-1.8", "kube-1.13")


def ask(
    algorithm: str,
    cluster: ClusterSnapshot,
    pod: Pod,
    *,
    configuration: Mapping[str, Any] | None = None,
    gates: Mapping[str, bool] | None = None,
) -> Verdict:
    scheduler = scheduler_for(algorithm, configuration, gates)
    return scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)


def full_node(*, name: str = "n1", victim: str = "low", priority: int = 0, **pod: Any) -> ClusterSnapshot:
    return ClusterSnapshot(
        nodes=[make_node(name)], pods=[make_pod(victim, node=name, cpu="4", priority=priority, **pod)]
    )


def merged(*clusters: ClusterSnapshot, **more: Any) -> ClusterSnapshot:
    return ClusterSnapshot(
        nodes=[node for each in clusters for node in each.nodes],
        pods=[pod for each in clusters for pod in each.pods],
        **more,
    )


HIGH = make_pod("high", cpu="4", priority=10)


def refuses(term_labels: Mapping[str, str], *keys: str) -> Affinity:
    """Anti-affinity: a term for each key, of which the first selects ``term_labels`` and the others nothing."""
    terms = [
        PodAffinityTerm(
            topology_key=key, label_selector=LabelSelector(dict(term_labels) if index == 0 else {"no": "pod"})
        )
        for index, key in enumerate(keys)
    ]
    return Affinity(pod_anti_affinity=PodAntiAffinity(required=terms))


class TestSwitches:
    @pytest.mark.parametrize("algorithm", OLD)
    @pytest.mark.parametrize(
        ("configuration", "gates", "reason"),
        [
            pytest.param(
                {"kind": "KubeSchedulerConfiguration", "disablePreemption": True},
                None,
                "preemption is disabled (disablePreemption)",
                id="disablePreemption switches it off",
            ),
            pytest.param(
                None,
                {"PodPriority": False},
                "the feature gate PodPriority is off, so there is no preemption",
                id="without PodPriority there is none",
            ),
        ],
    )
    def test_no_pod_is_preempted(
        self, algorithm: str, configuration: Mapping[str, Any] | None, gates: Mapping[str, bool] | None, reason: str
    ) -> None:
        verdict = ask(algorithm, full_node(), HIGH, configuration=configuration, gates=gates)
        assert verdict.outcome == Outcome.UNSCHEDULABLE
        assert verdict.eligibility is not None
        assert verdict.eligibility.reason == reason

    def test_of_1_8_it_is_said_that_the_gate_is_taken_to_be_on(self) -> None:
        assert [each.field for each in ask("kube-1.8", full_node(), HIGH).assumptions] == ["feature gate PodPriority"]
        assert ask("kube-1.8", full_node(), HIGH, gates={"PodPriority": True}).assumptions == []
        assert ask("kube-1.13", full_node(), HIGH).assumptions == []

    def test_a_gate_of_a_later_release_is_passed_over_and_named(self) -> None:
        verdict = ask("kube-1.13", full_node(), HIGH, gates={"NonPreemptingPriority": True})
        assert [each.message for each in verdict.assumptions] == ["kube-1.13 does not have this gate and ignores it"]

    @pytest.mark.parametrize("algorithm", OLD)
    def test_a_gate_that_no_release_has_is_refused(self, algorithm: str) -> None:
        with pytest.raises(UsageError, match="unrecognized feature gate: podpriority") as caught:
            scheduler_for(algorithm, None, {"podpriority": True})
        assert caught.value.hint == "PodPriority"

    @pytest.mark.parametrize(
        "configuration",
        [
            pytest.param({"kind": "Pod"}, id="another kind"),
            pytest.param({"kind": "KubeSchedulerConfiguration", "disablePreemption": "yes"}, id="a text for a boolean"),
        ],
    )
    def test_a_configuration_that_is_none_is_refused(self, configuration: Mapping[str, Any]) -> None:
        with pytest.raises(ConfigurationError):
            scheduler_for("kube-1.13", configuration)

    def test_a_field_that_is_not_modeled_is_named(self) -> None:
        configuration = {"kind": "KubeSchedulerConfiguration", "schedulerName": "mine", "bindTimeoutSeconds": 5}
        scheduler = scheduler_for("kube-1.13", configuration)
        assert scheduler.scheduler_names == {"mine"}
        assert scheduler.algorithm == "kube-1.13"
        verdict = scheduler.decide(scheduler.prepare(full_node(), now=NOW), make_pod("own", scheduler_name="mine"))
        assert [each.field for each in verdict.assumptions] == ["bindTimeoutSeconds"]

    def test_a_name_that_there_is_not_is_refused_with_those_that_there_are(self) -> None:
        with pytest.raises(UsageError) as caught:
            scheduler_for("kube-1.9")
        assert caught.value.hint == ", ".join(ALL_ALGORITHMS)

    def test_conditions_keep_pods_off_where_taints_do_not_stand_for_them(self) -> None:
        ill = msgspec.structs.replace(
            make_node("n1"),
            status=msgspec.structs.replace(make_node("n1").status, conditions=[NodeCondition("Ready", "False")]),
        )
        cluster = ClusterSnapshot(nodes=[ill])
        answers = {
            (algorithm, by_taints): ask(algorithm, cluster, HIGH, gates={"TaintNodesByCondition": by_taints}).outcome
            for algorithm in OLD
            for by_taints in (True, False)
        }
        assert answers == {
            (algorithm, by_taints): Outcome.LANDS if by_taints else Outcome.UNSCHEDULABLE
            for algorithm in OLD
            for by_taints in (True, False)
        }


NO_NODES_AVAILABLE = "No nodes are available that match all of the predicates: Insufficient cpu (1)."


class TestEffects:
    def test_of_1_8_an_annotation(self) -> None:
        assert ask("kube-1.8", full_node(), HIGH).effects == [
            Effect("event", "pod shop/high", f"Warning FailedScheduling: {NO_NODES_AVAILABLE}"),
            Effect("setCondition", "pod shop/high", f"PodScheduled=False Unschedulable: {NO_NODES_AVAILABLE}"),
            Effect("nominate", "pod shop/high", "annotation NominatedNodeName=n1"),
            Effect("delete", "pod shop/low", "grace period 30 s"),
            Effect("event", "pod shop/low", "Normal Preempted: by shop/high on node n1"),
        ]

    def test_of_1_13_the_status_and_lower_nominations_are_cleared_last(self) -> None:
        waiting = [
            make_pod("lower", cpu="1", priority=5, nominated="n1"),
            make_pod("equal", priority=10, nominated="n1"),
        ]
        cluster = merged(full_node(), ClusterSnapshot(pods=waiting))
        verdict = ask("kube-1.13", cluster, HIGH)
        assert verdict.nominations_to_clear == ["shop/lower"]
        assert [(each.action, each.target) for each in verdict.effects] == [
            ("event", "pod shop/high"),
            ("setCondition", "pod shop/high"),
            ("nominate", "pod shop/high"),
            ("delete", "pod shop/low"),
            ("event", "pod shop/low"),
            ("clearNomination", "pod shop/lower"),
        ]

    def test_a_pod_without_any_node_to_try_loses_its_nomination_in_1_13(self) -> None:
        pod = make_pod("picky", priority=10, nominated="n1", node_selector={"disk": "ssd"})
        assert ask("kube-1.13", full_node(), pod).effects[-1].action == "clearNomination"
        assert ask("kube-1.13", full_node(), pod).nominations_to_clear == ["shop/picky"]

    def test_a_pod_whose_victims_are_leaving_keeps_it(self) -> None:
        leaving = make_pod("low", node="n1", cpu="4")
        leaving = msgspec.structs.replace(
            leaving, metadata=msgspec.structs.replace(leaving.metadata, deletion_timestamp=NOW)
        )
        cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[leaving])
        by_status = make_pod("high", cpu="4", priority=10, nominated="n1")
        by_annotation = msgspec.structs.replace(
            HIGH, metadata=msgspec.structs.replace(HIGH.metadata, annotations=PodAnnotations("n1"))
        )
        for algorithm, kept, tried in (("kube-1.8", by_annotation, by_status), ("kube-1.13", by_status, by_annotation)):
            verdict = ask(algorithm, cluster, kept)
            assert verdict.eligibility is not None
            assert not verdict.eligibility.eligible
            assert verdict.effects[-1].action == "keepNomination"
            assert ask(algorithm, cluster, tried).nominated_nodes == ["n1"]


class TestDifferences:
    def test_nominated_pods_keep_their_room_in_1_13_only(self) -> None:
        waiting = make_pod("equal", cpu="3", priority=10, nominated="n1")
        cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[waiting])
        assert ask("kube-1.8", cluster, HIGH).outcome == Outcome.LANDS
        assert ask("kube-1.13", cluster, HIGH).outcome == Outcome.UNSCHEDULABLE

    def test_1_8_asks_no_budget_and_1_13_counts_nothing(self) -> None:
        web = {"app": "web"}
        pods = [make_pod(f"web-{index}", node="n1", cpu="2", labels=web) for index in range(2)]
        allowed = ClusterSnapshot(
            nodes=[make_node("n1")], pods=pods, pod_disruption_budgets=[make_budget("web", web, 1)]
        )
        spent = msgspec.structs.replace(allowed, pod_disruption_budgets=[make_budget("web", web, 0)])
        found = {
            (algorithm, name): ask(algorithm, cluster, HIGH).candidates[0].num_pdb_violations
            for algorithm in (*OLD, "kube-1.36")
            for name, cluster in (("one allowed", allowed), ("none allowed", spent))
        }
        assert found == {
            ("kube-1.8", "one allowed"): 0,
            ("kube-1.8", "none allowed"): 0,
            ("kube-1.13", "one allowed"): 0,
            ("kube-1.13", "none allowed"): 2,
            ("kube-1.36", "one allowed"): 1,
            ("kube-1.36", "none allowed"): 2,
        }

    def test_the_first_victim_counts_for_the_highest_in_1_13(self) -> None:
        guarded = {"app": "guarded"}
        first = merged(
            full_node(name="a", victim="a-guarded", priority=1, labels=guarded),
            ClusterSnapshot(),
        )
        two = ClusterSnapshot(
            nodes=[make_node("b")],
            pods=[
                make_pod("b-guarded", node="b", cpu="2", priority=0, labels=guarded),
                make_pod("b-high", node="b", cpu="2", priority=5),
            ],
        )
        cluster = merged(first, two, pod_disruption_budgets=[make_budget("guarded", guarded, 0)])
        assert ask("kube-1.13", cluster, HIGH).nominated_nodes == ["b"]
        assert ask("kube-1.8", cluster, HIGH).nominated_nodes == ["a"]
        assert ask("kube-1.36", cluster, HIGH).nominated_nodes == ["a"]

    def test_host_ports_conflict_by_number_alone_in_1_8(self) -> None:
        def with_port(name: str, protocol: str, **pod: Any) -> Pod:
            return make_pod(name, containers=[Container(ports=[ContainerPort(host_port=53, protocol=protocol)])], **pod)

        cluster = ClusterSnapshot(nodes=[make_node("n1")], pods=[with_port("dns", "UDP", node="n1")])
        assert ask("kube-1.8", cluster, with_port("web", "TCP")).message.endswith("PodFitsHostPorts (1).")
        assert ask("kube-1.13", cluster, with_port("web", "TCP")).outcome == Outcome.LANDS

    def test_ephemeral_storage_never_comes_back_in_a_dry_run_of_1_8(self) -> None:
        def with_storage(name: str, **pod: Any) -> Pod:
            requests = {"ephemeral-storage": quantity("2Gi")}
            return make_pod(name, containers=[Container(resources=ResourceRequirements(requests=requests))], **pod)

        node = make_node("n1")
        allocatable = {**node.status.allocatable, "ephemeral-storage": quantity("3Gi")}
        node = msgspec.structs.replace(node, status=msgspec.structs.replace(node.status, allocatable=allocatable))
        cluster = ClusterSnapshot(nodes=[node], pods=[with_storage("low", node="n1")])
        assert ask("kube-1.8", cluster, with_storage("high", priority=10)).candidates == []
        assert ask("kube-1.13", cluster, with_storage("high", priority=10)).nominated_nodes == ["n1"]

    def test_the_last_term_gives_its_topology_to_all_of_a_pod_in_1_8(self) -> None:
        labels = {"app": "new"}
        holder = make_pod("holder", node="n1", affinity=refuses(labels, "kubernetes.io/hostname", "zone"))
        nodes = [make_node("n1", labels={"zone": "a"}), make_node("n2", labels={"zone": "a"})]
        cluster = ClusterSnapshot(nodes=nodes, pods=[holder])
        pod = make_pod("new", labels=labels)
        assert ask("kube-1.8", cluster, pod).feasible_nodes == []
        assert ask("kube-1.13", cluster, pod).feasible_nodes == ["n2"]

    def test_the_first_failure_decides_in_1_13_and_all_are_reported_in_1_8(self) -> None:
        pod = make_pod("picky", cpu="5", volumes=[], priority=10)
        cordoned = ClusterSnapshot(nodes=[make_node("n1", unschedulable=True)])
        assert ask("kube-1.13", cordoned, pod).filter["n1"].reasons == ["node(s) were unschedulable"]
        assert sorted(ask("kube-1.8", cordoned, pod).filter["n1"].reasons) == ["Insufficient cpu", "NodeUnschedulable"]

    @pytest.mark.parametrize(
        ("algorithm", "message"),
        [
            pytest.param("kube-1.8", 'PersistentVolumeClaim is not bound: "data"', id="1.8 counts its disks"),
            pytest.param(
                "kube-1.13", "pod has unbound immediate PersistentVolumeClaims", id="1.13 looks for its volume"
            ),
        ],
    )
    def test_an_unbound_claim_ends_the_attempt(self, algorithm: str, message: str) -> None:
        claim = PersistentVolumeClaim(metadata=AnnotatedMeta(name="data", namespace="shop"))
        volumes = [Volume(name="data", persistent_volume_claim=PersistentVolumeClaimVolume("data"))]
        cluster = merged(full_node(), persistent_volume_claims=[claim])
        verdict = ask(algorithm, cluster, make_pod("db", priority=10, volumes=volumes))
        assert (verdict.outcome, verdict.message) == (Outcome.UNSCHEDULABLE, message)
        assert verdict.reason == f"the scheduler fails with an error: {message}"


class Refusing:
    """An extender that refuses some nodes, and fails on others."""

    name = "gpu"
    supports_preemption = True
    is_prioritizer = False

    def __init__(self, *refused: str, fails: bool = False, is_ignorable: bool = False) -> None:
        self._refused = refused
        self._fails = fails
        self.is_ignorable = is_ignorable
        self.requested: list[tuple[str, int]] = []

    def is_interested(self, pod: Pod) -> bool:
        return True

    def filter(self, pod: Pod, nodes: Sequence[NodeInfo]) -> Filtered:
        self.requested += [(node_info.name, len(node_info.pods)) for node_info in nodes]
        failed = {node_info.name: "no GPU" for node_info in nodes if node_info.name in self._refused}
        return Filtered([info.name for info in nodes if info.name not in failed], failed)

    def process_preemption(
        self, pod: Pod, candidates: Mapping[str, Victims], node_infos: Mapping[str, NodeInfo]
    ) -> dict[str, Victims]:
        if self._fails:
            raise LegacyError("it is down")
        return {node: victims for node, victims in candidates.items() if node not in self._refused}


class TestExtenders:
    CLUSTER = merged(full_node(name="a", victim="low-a"), full_node(name="b", victim="low-b", priority=1))

    def ask(self, version: Version18 | Version113, extender: Refusing, cluster: ClusterSnapshot = CLUSTER) -> Verdict:
        scheduler = LegacyScheduler(version, extenders=[extender])
        return scheduler.decide(scheduler.prepare(cluster, now=NOW), HIGH)

    def test_1_8_asks_about_the_chosen_node_without_its_victims_and_then_about_the_next(self) -> None:
        extender = Refusing("a")
        assert self.ask(Version18(), extender).nominated_nodes == ["b"]
        assert extender.requested == [("a", 0), ("b", 0)]

    def test_1_13_asks_before_the_choice(self) -> None:
        extender = Refusing("a")
        verdict = self.ask(Version113(), extender)
        assert verdict.nominated_nodes == ["b"]
        assert [each.node for each in verdict.candidates] == ["b"]
        assert extender.requested == []

    def test_one_that_fails_ends_the_preemption_unless_it_may_be_ignored(self) -> None:
        failed = self.ask(Version113(), Refusing(fails=True))
        assert failed.outcome == Outcome.UNSCHEDULABLE
        assert failed.reason == "preemption fails with an error: it is down"
        assert self.ask(Version113(), Refusing(fails=True, is_ignorable=True)).nominated_nodes == ["a"]

    @pytest.mark.parametrize("version", [Version18(), Version113()], ids=OLD)
    def test_a_node_that_an_extender_refuses_is_tried(self, version: Version18 | Version113) -> None:
        empty = ClusterSnapshot(nodes=[make_node("a")])
        verdict = self.ask(version, Refusing("a"), empty)
        assert verdict.filter["a"].reasons == ["no GPU"]
        assert verdict.potential_nodes == ["a"]


@pytest.mark.parametrize("algorithm", OLD)
def test_the_pods_of_a_node_go_least_important_first(algorithm: str) -> None:
    scheduler = scheduler_for(algorithm)
    pods = [make_pod(f"p{priority}", node="n1", priority=priority) for priority in (3, 1, 2, 7)]
    prepared = scheduler.prepare(ClusterSnapshot(nodes=[make_node("n1")], pods=pods), now=NOW)
    assert [each.pod for each in scheduler.rank_victims(prepared, "n1", 5)] == ["shop/p1", "shop/p2", "shop/p3"]


@pytest.mark.parametrize("algorithm", OLD)
def test_the_story_of_a_node_tells_every_predicate(algorithm: str) -> None:
    scheduler = scheduler_for(algorithm)
    prepared = scheduler.prepare(full_node(), now=NOW)
    story = scheduler.describe_node(prepared, HIGH, "n1")
    assert [status.plugin for status in story.filters if not status.is_success] == ["GeneralPredicates"]
    assert all(status.is_success for status in story.without_lower)
    assert story.lower_priority_pods == ["shop/low"]


@pytest.mark.parametrize("algorithm", OLD)
def test_a_pod_that_fits_on_several_nodes_lands_on_any_and_scores_are_said_to_be_missing(algorithm: str) -> None:
    cluster = ClusterSnapshot(nodes=[make_node("a"), make_node("b")])
    verdict = ask(algorithm, cluster, HIGH, gates={"PodPriority": True})
    assert verdict.lands_on == ["a", "b"]
    assert [each.message for each in verdict.assumptions] == [
        f"it fits on 2 nodes; scores are not computed for {algorithm}"
    ]
