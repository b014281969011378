"""Topology spread: which nodes it refuses and why, how it scores, and what the default constraints go by."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from kpreempt.model.affinity import Affinity, NodeAffinity, NodeSelector, NodeSelectorTerm
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement, NodeSelectorRequirement
from kpreempt.model.meta import ObjectMeta, OwnerReference
from kpreempt.model.pod import Pod, PodMeta, TopologySpreadConstraint
from kpreempt.model.taints import Taint, Toleration
from kpreempt.model.workloads import (
    ReplicaSet,
    ReplicationController,
    ReplicationControllerSpec,
    Service,
    ServiceSpec,
    StatefulSet,
    WorkloadSpec,
)
from kpreempt.schedulers.kube.framework.label_selectors import default_selector
from kpreempt.schedulers.kube.plugins.pod_topology_spread.filtering import MAX_DOMAINS
from kpreempt.schedulers.kube.plugins.pod_topology_spread.scoring import natural_log
from kpreempt.schedulers.kube.profile import Profile
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.verdict import Code, Verdict
from kpreempt.verdict.details import SpreadConflict
from tests.factories import NOW, decide, make_node, make_pod, reasons

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
LABELS = {"app": "web", "version": "2"}
WEB = LabelSelector(match_labels={"app": "web"})
SKEW = "node(s) didn't match pod topology spread constraints"
MISSING = f"{SKEW} (missing required label)"


def spread(selector: LabelSelector | None = WEB, *, key: str = ZONE, skew: int = 1, **rest: Any) -> dict[str, Any]:
    """The part of a pod's spec with one hard constraint."""
    constraint = TopologySpreadConstraint(max_skew=skew, topology_key=key, label_selector=selector, **rest)
    return {"topology_spread_constraints": [constraint]}


def web(name: str, node: str, **rest: Any) -> Pod:
    return make_pod(name, node=node, labels=rest.pop("labels", LABELS), **rest)


def new(**spec: Any) -> Pod:
    return make_pod("new", labels=LABELS, priority=10, **spec)


def cluster(*pods: Pod, **parts: Any) -> ClusterSnapshot:
    """Nodes ``a`` and ``b`` in one zone, ``c`` in another, ``d`` in none."""
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "east"), ("b", "east"), ("c", "west"))]
    return ClusterSnapshot(nodes=[*nodes, make_node("d")], pods=list(pods), **parts)


def terminating(pod: Pod) -> Pod:
    metadata = msgspec.structs.replace(pod.metadata, deletion_timestamp=datetime(2026, 11, 20, tzinfo=UTC))
    return msgspec.structs.replace(pod, metadata=metadata)


def only_in(zone: str) -> Affinity:
    terms = [NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(ZONE, "In", [zone])])]
    return Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=terms)))


TWO_EAST = (web("one", "a"), web("two", "a"))


@pytest.mark.parametrize(
    ("existing", "incoming", "refused"),
    [
        pytest.param(
            TWO_EAST, new(**spread()), {"a": SKEW, "b": SKEW, "d": MISSING}, id="a zone may not get ahead of the least"
        ),
        pytest.param(TWO_EAST, new(**spread(skew=3)), {"d": MISSING}, id="within the allowed skew all zones will do"),
        pytest.param(
            TWO_EAST,
            new(**spread(LabelSelector(match_labels={"app": "other"}))),
            {"d": MISSING},
            id="pods that do not match do not count, nor does the incoming pod",
        ),
        pytest.param(TWO_EAST, new(**spread(None)), {"d": MISSING}, id="no selector matches no pod"),
        pytest.param(
            TWO_EAST,
            new(**spread(LabelSelector())),
            {"d": MISSING},
            id="an empty selector counts the incoming pod only",
        ),
        pytest.param(
            [terminating(pod) for pod in TWO_EAST],
            new(**spread()),
            {"d": MISSING},
            id="pods that are being deleted do not count",
        ),
        pytest.param(
            [web("one", "a", namespace="bank"), web("two", "a", namespace="bank")],
            new(**spread()),
            {"d": MISSING},
            id="pods of other namespaces do not count",
        ),
        pytest.param(
            [web("one", "d"), web("two", "d")],
            new(**spread()),
            {"d": MISSING},
            id="pods on nodes without the label do not count",
        ),
        pytest.param(
            [web("one", "a"), web("two", "c")],
            new(**spread(min_domains=3)),
            {"a": SKEW, "b": SKEW, "c": SKEW, "d": MISSING},
            id="with fewer domains than wanted the minimum is zero",
        ),
        pytest.param(
            [web("one", "a"), web("two", "c")],
            new(**spread(min_domains=2)),
            {"d": MISSING},
            id="with as many domains as wanted the minimum is that of the domains",
        ),
        pytest.param(
            TWO_EAST,
            new(affinity=only_in("east"), **spread()),
            {
                "c": "node(s) didn't match Pod's node affinity/selector",
                "d": "node(s) didn't match Pod's node affinity/selector",
            },
            id="zones that the pod's node affinity leaves out are no domains",
        ),
        pytest.param(
            TWO_EAST,
            new(node_selector={ZONE: "east"}, **spread(node_affinity_policy="Ignore")),
            {
                "a": SKEW,
                "b": SKEW,
                "c": "node(s) didn't match Pod's node affinity/selector",
                "d": "node(s) didn't match Pod's node affinity/selector",
            },
            id="unless the policy is to ignore node affinity",
        ),
        pytest.param(
            [web("one", "a", labels={"app": "web", "version": "1"}), web("two", "a", labels={"app": "web"})],
            new(**spread(match_label_keys=["version"])),
            {"d": MISSING},
            id="match label keys narrow the selector to the pod's own values",
        ),
        pytest.param(
            TWO_EAST,
            new(**spread(match_label_keys=["absent"])),
            {"a": SKEW, "b": SKEW, "d": MISSING},
            id="a match label key that the pod lacks is ignored",
        ),
    ],
)
def test_the_nodes_that_are_refused(existing: list[Pod], incoming: Pod, refused: Mapping[str, str]) -> None:
    assert reasons(decide(cluster(*existing), incoming)) == refused


@pytest.mark.parametrize(
    ("policy", "tolerations", "refused"),
    [
        pytest.param(None, [], {"a", "c"}, id="by default a tainted node is a domain"),
        pytest.param("Honor", [], {"c"}, id="to honor taints leaves out nodes that the pod does not tolerate"),
        pytest.param("Honor", [Toleration("k", "Exists")], {"a"}, id="a node that it tolerates is a domain"),
    ],
)
def test_taints_and_domains(policy: Any, tolerations: list[Toleration], refused: set[str]) -> None:
    nodes = [
        make_node("a", labels={ZONE: "east"}),
        make_node("c", labels={ZONE: "west"}, taints=[Taint("k", "v", "NoSchedule")]),
    ]
    snapshot = ClusterSnapshot(nodes=nodes, pods=[web("one", "a")])
    incoming = new(tolerations=tolerations, **spread(node_taints_policy=policy))
    assert reasons(decide(snapshot, incoming)).keys() == refused


def test_a_missing_label_cannot_be_mended_and_skew_can() -> None:
    verdict = decide(cluster(*TWO_EAST), new(**spread()))
    assert verdict.filter["d"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert verdict.filter["a"].code == Code.UNSCHEDULABLE


def test_a_refusal_gives_the_sum() -> None:
    verdict = decide(cluster(*TWO_EAST, web("three", "c")), new(**spread(min_domains=2)))
    assert verdict.filter["a"].detail == SpreadConflict(
        topology_key=ZONE,
        topology_value="east",
        count=2,
        self_match=1,
        minimum=1,
        skew=2,
        max_skew=1,
        selector="app=web",
        counts={"east": 2, "west": 1},
        min_domains=2,
    )
    missing = verdict.filter["d"].detail
    assert isinstance(missing, SpreadConflict)
    assert (missing.topology_value, missing.counts) == ("", {})


def test_of_many_domains_a_refusal_shows_the_emptiest_and_its_own() -> None:
    names = [f"n{index:02}" for index in range(30)]
    pods = [web(name, name) for name in names[1:]]
    verdict = decide(ClusterSnapshot(nodes=[make_node(name) for name in names], pods=pods), new(**spread(key=HOSTNAME)))
    detail = verdict.filter["n29"].detail
    assert isinstance(detail, SpreadConflict)
    assert list(detail.counts) == [*names[: MAX_DOMAINS - 1], "n29"]
    assert (detail.counts["n00"], detail.counts["n29"]) == (0, 1)


def test_evictions_on_a_node_mend_its_domain() -> None:
    verdict = decide(cluster(*TWO_EAST), new(node_selector={ZONE: "east"}, **spread(node_affinity_policy="Ignore")))
    assert [(each.node, sorted(each.victims)) for each in verdict.candidates] == [("a", ["shop/one", "shop/two"])]
    assert verdict.dry_run["b"].message == "No preemption victims found for incoming pod"


def test_the_minimum_follows_the_pods_that_are_taken_away_and_put_back() -> None:
    # East has 1 pod, west 3: with all of west gone the minimum is 0, with one put back it is 1 again.
    pods = [web("east", "a"), *(web(f"west-{index}", "c", started=NOW) for index in range(3))]
    verdict = decide(cluster(*pods), new(node_selector={ZONE: "west"}, **spread(node_affinity_policy="Ignore")))
    (candidate,) = verdict.candidates
    assert [(step.pod, step.is_reprieved) for step in candidate.steps] == [
        ("shop/west-0", True),
        ("shop/west-1", False),
        ("shop/west-2", False),
    ]


def test_match_label_keys_are_ignored_without_their_gate() -> None:
    old = [web(name, "a", labels={"app": "web", "version": "1"}) for name in ("one", "two")]
    scheduler = KubeScheduler(behavior=behavior(gates={"MatchLabelKeysInPodTopologySpread": False}))
    prepared = scheduler.prepare(cluster(*old), now=NOW)
    verdict = scheduler.decide(prepared, new(**spread(match_label_keys=["version"])))
    assert reasons(verdict) == {"a": SKEW, "b": SKEW, "d": MISSING}


def test_a_selector_that_cannot_be_parsed_is_an_error() -> None:
    broken = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", [])])
    verdict = decide(cluster(), new(**spread(broken)))
    assert verdict.message == (
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: obtaining pod\'s hard topology spread '
        "constraints: values: Invalid value: null: for 'in', 'notin' operators, values set can't be empty"
    )


def spread_scores(verdict: Verdict) -> Mapping[str, int] | None:
    """The plugin's weighted scores, or ``None`` where it was skipped."""
    scores = {name: plugins.get("PodTopologySpread") for name, plugins in verdict.plugin_scores.items()}
    if None in scores.values():
        return None
    return {name: score for name, score in scores.items() if score is not None}


SOFT: dict[str, Any] = {"when_unsatisfiable": "ScheduleAnyway"}


@pytest.mark.parametrize(
    ("incoming", "scores"),
    [
        pytest.param(
            new(**spread(**SOFT)),
            {"a": 0, "b": 0, "c": 200, "d": 0},
            id="the emptier zone is better, and a node without the label scores nothing",
        ),
        pytest.param(
            new(**spread(key=HOSTNAME, **SOFT)),
            {"a": 0, "b": 200, "c": 200, "d": 200},
            id="with host names each node counts for itself",
        ),
        pytest.param(
            new(**spread(skew=5, **SOFT)),
            {"a": 114, "b": 114, "c": 200, "d": 0},
            id="a wider skew levels the differences",
        ),
        pytest.param(new(), None, id="without constraints, services or owner the plugin does not score"),
    ],
)
def test_scores(incoming: Pod, scores: Mapping[str, int] | None) -> None:
    assert spread_scores(decide(cluster(*TWO_EAST), incoming)) == scores


def service(name: str = "web", namespace: str = "shop", **selector: str) -> Service:
    return Service(ObjectMeta(name=name, namespace=namespace), ServiceSpec(selector))


def test_default_constraints_score_what_a_service_selects() -> None:
    verdict = decide(cluster(*TWO_EAST, services=[service(app="web")]), new())
    scores = spread_scores(verdict)
    assert scores is not None
    # A node without a zone is scored too, by its host name alone.
    assert scores["a"] < scores["b"] < scores["c"] < scores["d"]


@pytest.mark.parametrize(
    ("args", "refused"),
    [
        pytest.param({"defaultingType": "List", "defaultConstraints": []}, {}, id="an empty list means none"),
        pytest.param(
            {
                "defaultingType": "List",
                "defaultConstraints": [{"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}],
            },
            {"a": SKEW, "b": SKEW, "d": MISSING},
            id="a listed hard constraint refuses nodes",
        ),
    ],
)
def test_default_constraints_of_the_configuration(args: Mapping[str, object], refused: Mapping[str, str]) -> None:
    scheduler = KubeScheduler(profiles=[Profile(plugin_args={"PodTopologySpread": args})])
    prepared = scheduler.prepare(cluster(*TWO_EAST, services=[service(app="web")]), now=NOW)
    verdict = scheduler.decide(prepared, new())
    assert reasons(verdict) == refused
    assert spread_scores(verdict) is None


def owned(kind: str, api_version: str, *, is_controller: bool = True) -> Pod:
    owner = OwnerReference(kind=kind, name="web", api_version=api_version, controller=is_controller)
    return Pod(metadata=PodMeta(name="new", namespace="shop", labels=LABELS, owner_references=[owner]))


OWNERS = ClusterSnapshot(
    services=[service(app="web"), service("idle"), service("other", app="other"), service("far", "bank", app="web")],
    replica_sets=[ReplicaSet(ObjectMeta(name="web", namespace="shop"), WorkloadSpec(LabelSelector({"set": "1"})))],
    stateful_sets=[StatefulSet(ObjectMeta(name="web", namespace="shop"), WorkloadSpec(LabelSelector({"set": "2"})))],
    replication_controllers=[
        ReplicationController(ObjectMeta(name="web", namespace="shop"), ReplicationControllerSpec({"set": "3"}))
    ],
)


@pytest.mark.parametrize(
    ("pod", "selected"),
    [
        pytest.param(new(), {"app": "web"}, id="a service of the namespace that selects the pod"),
        pytest.param(owned("ReplicaSet", "apps/v1"), {"app": "web", "set": "1"}, id="and its replica set"),
        pytest.param(owned("StatefulSet", "apps/v1"), {"app": "web", "set": "2"}, id="and its stateful set"),
        pytest.param(owned("ReplicationController", "v1"), {"app": "web", "set": "3"}, id="and its controller"),
        pytest.param(owned("ReplicaSet", "extensions/v1beta1"), {"app": "web"}, id="an old API version is not known"),
        pytest.param(owned("Job", "batch/v1"), {"app": "web"}, id="a job adds nothing"),
        pytest.param(
            owned("ReplicaSet", "apps/v1", is_controller=False), {"app": "web"}, id="an owner that does not control it"
        ),
    ],
)
def test_the_default_selector(pod: Pod, selected: dict[str, str]) -> None:
    assert default_selector(pod, OWNERS) == LabelSelector(match_labels=selected)


def test_a_service_and_an_owner_that_contradict_each_other_select_no_pod() -> None:
    sets = [ReplicaSet(ObjectMeta(name="web", namespace="shop"), WorkloadSpec(LabelSelector({"app": "db"})))]
    selector = default_selector(
        owned("ReplicaSet", "apps/v1"), ClusterSnapshot(services=[service(app="web")], replica_sets=sets)
    )
    assert not selector.is_empty()
    assert not selector.matches({"app": "web"})
    assert not selector.matches({"app": "db"})


@pytest.mark.parametrize(
    ("number", "bits"),
    [
        pytest.param(2.0, "0x1.62e42fefa39efp-1", id="two"),
        pytest.param(3.0, "0x1.193ea7aad030ap+0", id="three, where the exact value rounds up"),
        pytest.param(14.0, "0x1.51cca16d7bba8p+1", id="fourteen, where the exact value rounds down"),
        pytest.param(5002.0, "0x1.10901f6dc84b9p+3", id="as many as upstream supports"),
    ],
)
def test_the_logarithm_is_that_of_go(number: float, bits: str) -> None:
    assert natural_log(number).hex() == bits
