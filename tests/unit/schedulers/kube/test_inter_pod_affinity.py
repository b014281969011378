"""Pod affinity and anti-affinity: which nodes they refuse and why, and how preferences are scored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from kpreempt.model.affinity import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    PodAntiAffinity,
    WeightedPodAffinityTerm,
)
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.meta import AnnotatedMeta
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import Namespace
from kpreempt.schedulers.kube.profile import Profile
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.verdict import Code, Status, Verdict
from kpreempt.verdict.details import AffinityConflict
from tests.factories import NOW, decide, make_node, make_pod, reasons

ZONE = "topology.kubernetes.io/zone"
WEB = LabelSelector(match_labels={"app": "web"})

NO_AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"


def near(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(required=list(terms)))


def apart(*terms: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAntiAffinity(required=list(terms)))


def term(selector: LabelSelector | None = WEB, key: str = ZONE, **rest: Any) -> PodAffinityTerm:
    return PodAffinityTerm(topology_key=key, label_selector=selector, **rest)


def preferring(weight: int, wanted: PodAffinityTerm) -> Affinity:
    return Affinity(pod_affinity=PodAffinity(preferred=[WeightedPodAffinityTerm(weight, wanted)]))


def avoiding(weight: int, unwanted: PodAffinityTerm) -> Affinity:
    return Affinity(pod_anti_affinity=PodAntiAffinity(preferred=[WeightedPodAffinityTerm(weight, unwanted)]))


def namespace(name: str, **labels: str) -> Namespace:
    return Namespace(AnnotatedMeta(name=name, labels=labels))


def cluster(*pods: Pod, namespaces: Sequence[Namespace] = ()) -> ClusterSnapshot:
    """Nodes ``a`` and ``b`` in one zone, ``c`` in another, ``d`` in none."""
    nodes = [make_node(name, labels={ZONE: zone}) for name, zone in (("a", "east"), ("b", "east"), ("c", "west"))]
    return ClusterSnapshot(nodes=[*nodes, make_node("d")], pods=list(pods), namespaces=list(namespaces))


def on_all(nodes: str, reason: str) -> dict[str, str]:
    return dict.fromkeys(nodes, reason)


NAMESPACES = (namespace("shop", team="a"), namespace("bank", team="b"))
TEAM_A = LabelSelector(match_labels={"team": "a"})
NOT_TEAM_B = LabelSelector(match_expressions=[LabelSelectorRequirement("team", "NotIn", ["b"])])
CACHE = LabelSelector(match_labels={"app": "cache"})


@pytest.mark.parametrize(
    ("existing", "incoming", "refused"),
    [
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=near(term())),
            on_all("cd", NO_AFFINITY),
            id="affinity wants the zone of a matching pod",
        ),
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=apart(term())),
            on_all("ab", ANTI_AFFINITY),
            id="anti-affinity refuses the zone of a matching pod, and takes nodes without a zone",
        ),
        pytest.param(
            make_pod("guard", node="a", affinity=apart(term())),
            make_pod("new", labels={"app": "web"}),
            on_all("ab", EXISTING),
            id="anti-affinity of an existing pod refuses its zone",
        ),
        pytest.param(
            make_pod("guard", node="d", affinity=apart(term())),
            make_pod("new", labels={"app": "web"}),
            {},
            id="anti-affinity of an existing pod on a node without the label refuses nothing",
        ),
        pytest.param(
            make_pod("other", node="a", labels={"app": "other"}),
            make_pod("new", labels={"app": "web"}, affinity=near(term())),
            on_all("d", NO_AFFINITY),
            id="the first pod of a group that wants its own kind may go where the label is",
        ),
        pytest.param(
            make_pod("other", node="a", labels={"app": "other"}),
            make_pod("new", labels={"app": "web"}, affinity=near(term(), term(CACHE))),
            on_all("abcd", NO_AFFINITY),
            id="a pod that misses one of its own terms is not the first of a group",
        ),
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=near(term(), term(CACHE))),
            on_all("abcd", NO_AFFINITY),
            id="one existing pod has to match all affinity terms",
        ),
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=apart(term(), term(CACHE))),
            on_all("ab", ANTI_AFFINITY),
            id="one matching anti-affinity term is enough",
        ),
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=apart(term(None))),
            {},
            id="a term without a selector matches no pod",
        ),
        pytest.param(
            make_pod("web", node="a", namespace="bank", labels={"app": "web"}),
            make_pod("new", affinity=apart(term())),
            {},
            id="a term looks at the pod's own namespace",
        ),
        pytest.param(
            make_pod("web", node="a", namespace="bank", labels={"app": "web"}),
            make_pod("new", affinity=apart(term(namespaces=["bank"]))),
            on_all("ab", ANTI_AFFINITY),
            id="a term looks at the namespaces that it names",
        ),
        pytest.param(
            make_pod("web", node="a", namespace="bank", labels={"app": "web"}),
            make_pod("new", affinity=apart(term(namespace_selector=TEAM_A))),
            {},
            id="a namespace selector leaves out namespaces that it does not match",
        ),
        pytest.param(
            make_pod("web", node="a", namespace="bank", labels={"app": "web"}),
            make_pod("new", affinity=apart(term(namespace_selector=LabelSelector()))),
            on_all("ab", ANTI_AFFINITY),
            id="an empty namespace selector means all namespaces",
        ),
        pytest.param(
            make_pod("web", node="a", namespace="bank", labels={"app": "web"}),
            make_pod("new", affinity=apart(term(namespace_selector=NOT_TEAM_B))),
            on_all("ab", ANTI_AFFINITY),
            id="a namespace selector that holds without labels matches all namespaces, as upstream",
        ),
        pytest.param(
            make_pod("guard", node="a", namespace="bank", affinity=apart(term(namespace_selector=NOT_TEAM_B))),
            make_pod("new", namespace="bank", labels={"app": "web"}),
            {},
            id="an existing pod's namespace selector is matched against the labels",
        ),
        pytest.param(
            make_pod("guard", node="a", affinity=apart(term(namespace_selector=NOT_TEAM_B))),
            make_pod("new", namespace="unknown", labels={"app": "web"}),
            on_all("ab", EXISTING),
            id="a namespace that is not known has no labels",
        ),
    ],
)
def test_the_nodes_that_are_refused(existing: Pod, incoming: Pod, refused: Mapping[str, str]) -> None:
    assert reasons(decide(cluster(existing, namespaces=NAMESPACES), incoming)) == refused


def test_unmet_affinity_cannot_be_mended_and_anti_affinity_can() -> None:
    web = make_pod("web", node="a", labels={"app": "web"})
    wanting = decide(cluster(web), make_pod("new", affinity=near(term())))
    refusing = decide(cluster(web), make_pod("new", affinity=apart(term())))
    guarded = decide(cluster(make_pod("g", node="a", affinity=apart(term()))), make_pod("new", labels={"app": "web"}))
    assert wanting.filter["c"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert refusing.filter["a"].code == Code.UNSCHEDULABLE
    assert guarded.filter["a"].code == Code.UNSCHEDULABLE


def detail(status: Status) -> AffinityConflict:
    assert isinstance(status.detail, AffinityConflict)
    return status.detail


def test_a_refusal_names_the_pods_behind_it() -> None:
    pods = [make_pod(f"web-{index}", node="b", labels={"app": "web"}) for index in range(7)]
    refusing = decide(cluster(*pods), make_pod("new", affinity=apart(term())))
    first_five = [f"shop/web-{index}" for index in range(5)]
    assert detail(refusing.filter["a"]) == AffinityConflict(
        "antiAffinity", ZONE, "east", "app=web", first_five, ["b"] * 5
    )
    guard = make_pod("guard", node="b", affinity=apart(term()))
    guarded = decide(cluster(guard), make_pod("new", labels={"app": "web"}))
    assert detail(guarded.filter["a"]) == AffinityConflict(
        "existingAntiAffinity", ZONE, "east", "app=web", ["shop/guard"], ["b"]
    )
    wanting = decide(cluster(), make_pod("new", affinity=near(term())))
    assert detail(wanting.filter["a"]) == AffinityConflict("affinity", ZONE, "east", "app=web")
    assert detail(wanting.filter["d"]) == AffinityConflict("affinity", ZONE, "", "app=web")


def test_evicting_the_pods_that_anti_affinity_refuses_makes_room() -> None:
    pods = [make_pod(name, node="a", labels={"app": app}) for name, app in (("web", "web"), ("db", "db"))]
    verdict = decide(cluster(*pods), make_pod("new", priority=10, affinity=apart(term()), node_selector={ZONE: "east"}))
    assert [(each.node, each.victims) for each in verdict.candidates] == [("a", ["shop/web"])]
    blocked = {step.pod: step.blocked_by for step in verdict.candidates[0].steps}
    assert blocked["shop/web"] is not None
    assert detail(blocked["shop/web"]).holders == ["shop/web"]
    # On b the refused pod stays, because it is on another node.
    assert verdict.dry_run["b"].message == "No preemption victims found for incoming pod"


def test_evicting_the_pod_that_affinity_wants_does_not_help() -> None:
    wanted = make_pod("web", node="a", cpu="4", labels={"app": "web"})
    incoming = make_pod("new", cpu="4", priority=10, affinity=near(term(key="kubernetes.io/hostname")))
    verdict = decide(cluster(wanted), incoming)
    assert verdict.candidates == []
    assert verdict.dry_run["a"].message == NO_AFFINITY


def test_a_nominated_pod_is_named_as_what_is_in_the_way() -> None:
    nominated = make_pod("web", priority=20, nominated="a", labels={"app": "web"})
    incoming = make_pod("new", priority=10, affinity=apart(term(key="kubernetes.io/hostname")))
    verdict = decide(cluster(nominated), incoming)
    assert reasons(verdict) == {"a": ANTI_AFFINITY}
    assert detail(verdict.filter["a"]).holders == ["shop/web"]


def test_a_selector_that_cannot_be_parsed_ends_the_cycle() -> None:
    broken = LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", ["no label!"])])
    verdict = decide(cluster(), make_pod("new", affinity=near(term(broken))))
    assert verdict.filter["a"].code == Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert verdict.filter["a"].message.startswith(
        'parsing pod: requiredAffinityTerms: values[0][app]: Invalid value: "no label!": a valid label must be'
    )


def affinity_scores(verdict: Verdict) -> Mapping[str, int] | None:
    """The plugin's weighted scores, or ``None`` where it was skipped."""
    scores = {name: plugins.get("InterPodAffinity") for name, plugins in verdict.plugin_scores.items()}
    if None in scores.values():
        return None
    return {name: score for name, score in scores.items() if score is not None}


@pytest.mark.parametrize(
    ("existing", "incoming", "scores"),
    [
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=preferring(10, term())),
            {"a": 200, "b": 200, "c": 0, "d": 0},
            id="the pod prefers a matching pod's zone",
        ),
        pytest.param(
            make_pod("web", node="a", labels={"app": "web"}),
            make_pod("new", affinity=avoiding(10, term())),
            {"a": 0, "b": 0, "c": 200, "d": 200},
            id="the pod avoids a matching pod's zone",
        ),
        pytest.param(
            make_pod("old", node="c", affinity=preferring(10, term())),
            make_pod("new", labels={"app": "web"}),
            {"a": 0, "b": 0, "c": 200, "d": 0},
            id="an existing pod prefers the incoming one",
        ),
        pytest.param(
            make_pod("old", node="c", affinity=near(term())),
            make_pod("new", labels={"app": "web"}),
            {"a": 0, "b": 0, "c": 200, "d": 0},
            id="an existing pod's required affinity counts as a preference",
        ),
        pytest.param(
            make_pod("old", node="c", labels={"app": "web"}),
            make_pod("new", labels={"app": "web"}),
            None,
            id="without any preference the plugin does not score",
        ),
        pytest.param(
            make_pod("web", node="d", labels={"app": "web"}),
            make_pod("new", affinity=preferring(10, term())),
            None,
            id="a match on a node without the label does not score",
        ),
    ],
)
def test_scores(existing: Pod, incoming: Pod, scores: Mapping[str, int] | None) -> None:
    assert affinity_scores(decide(cluster(existing), incoming)) == scores


@pytest.mark.parametrize(
    ("args", "existing"),
    [
        pytest.param(
            {"hardPodAffinityWeight": 1, "ignorePreferredTermsOfExistingPods": True},
            make_pod("old", node="c", affinity=preferring(10, term())),
            id="preferences of existing pods can be ignored",
        ),
        pytest.param(
            {"hardPodAffinityWeight": 0},
            make_pod("old", node="c", affinity=near(term())),
            id="required affinity of existing pods can have no weight",
        ),
    ],
)
def test_arguments_that_take_preferences_away(args: Mapping[str, object], existing: Pod) -> None:
    scheduler = KubeScheduler(profiles=[Profile(plugin_args={"InterPodAffinity": args})])
    incoming = make_pod("new", labels={"app": "web"})
    assert affinity_scores(scheduler.decide(scheduler.prepare(cluster(existing), now=NOW), incoming)) is None
