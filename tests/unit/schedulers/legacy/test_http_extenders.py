"""Old schedulers that call the configured extenders: what each answer leads to, and what is reported.

The tables of upstream's TestGenericSchedulerWithExtenders (v1.8.15, v1.13.12, v1.18.19) as far as they do not score.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from kpreempt.errors import ConfigurationError
from kpreempt.extenders import connect
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.pod import Container, ResourceRequirements
from kpreempt.model.quantity import quantity
from kpreempt.report.explain.attached import describe_call
from kpreempt.report.quoting import plain
from kpreempt.schedulers.extender_protocol import Call, ExtenderError, ExtenderSettings
from kpreempt.schedulers.legacy.factory import legacy_scheduler
from kpreempt.verdict import ExtenderCall, Outcome, Verdict
from tests.factories import NOW, make_node, make_pod
from tests.fake_extender import FakeExtender, good

OLD = ("kube-1.8", "kube-1.13", "kube-1.18")
WITH_PREEMPTION = OLD[1:]
POD = make_pod("p", cpu="4", priority=9)
EMPTY = ClusterSnapshot(nodes=[make_node("n1"), make_node("n2")])
FULL = ClusterSnapshot(
    nodes=[make_node("n1"), make_node("n2")],
    pods=[
        make_pod("low-1", node="n1", cpu="4"),
        make_pod("tiny-1", node="n1", cpu="0", priority=2),
        make_pod("low-2", node="n2", cpu="4", priority=1),
    ],
)
# What an extender answers to a verb and arguments: a value, or an error.
Answers = Callable[[str, dict[str, Any]], Any]


def connecting(answers: Mapping[str, Answers]) -> Callable[[ExtenderSettings], Call]:
    """Extenders without a network, by their addresses."""

    def connected(settings: ExtenderSettings) -> Call:
        def call(url: str, body: bytes) -> bytes:
            answer = answers[settings.url_prefix](url.rpartition("/")[2], json.loads(body))
            if isinstance(answer, Exception):
                raise answer
            return json.dumps(answer).encode()

        return call

    return connected


def decide(
    algorithm: str,
    answers: Mapping[str, Answers],
    cluster: ClusterSnapshot = EMPTY,
    *,
    extenders: list[dict[str, Any]] | None = None,
    pod: Any = POD,
    **settings: Any,
) -> Verdict:
    stated = [
        {"urlPrefix": prefix, "filterVerb": "f", "preemptVerb": "p", "weight": 1, "nodeCacheCapable": True, **settings}
        for prefix in answers
    ]
    policy = {
        "extenders": extenders if extenders is not None else stated,
        "predicates": [{"name": "GeneralPredicates"}],
    }
    scheduler = legacy_scheduler(algorithm, None, {"PodPriority": True}, policy=policy, connect=connecting(answers))
    verdict: Verdict = scheduler.decide(scheduler.prepare(cluster, now=NOW), pod)
    return verdict


def only(*names: str, **failed: str) -> Answers:
    """Lets these nodes pass, and keeps all candidates."""

    def answer(verb: str, body: dict[str, Any]) -> Any:
        if verb == "p":
            return {"nodeNameToMetaVictims": body.get("NodeNameToMetaVictims", body.get("nodeNameToMetaVictims"))}
        requested = body.get("NodeNames", body.get("nodenames"))
        return {"nodenames": [name for name in requested if name in names], "failedNodes": failed}

    return answer


def fixed(value: Any) -> Answers:
    return lambda verb, body: value


FAILS = fixed(ExtenderError("it is down"))


@pytest.mark.parametrize("algorithm", OLD)
@pytest.mark.parametrize(
    ("answers", "lands_on"),
    [
        pytest.param({"a": only("n1", "n2"), "b": only()}, [], id="the second lets none pass"),
        pytest.param({"a": only("n1", "n2"), "b": only("n1")}, ["n1"], id="the second lets one pass"),
        pytest.param({"a": only("n2"), "b": only("n1")}, [], id="each lets another pass"),
        pytest.param({"a": only("n1", "n2")}, ["n1", "n2"], id="all pass"),
        pytest.param({"a": FAILS, "b": only("n1")}, [], id="the first fails"),
    ],
)
def test_where_a_pod_lands(algorithm: str, answers: dict[str, Answers], lands_on: list[str]) -> None:
    verdict = decide(algorithm, answers)
    assert verdict.lands_on == lands_on
    assert (verdict.outcome == Outcome.LANDS) is bool(lands_on)


@pytest.mark.parametrize("algorithm", OLD)
def test_one_that_fails_ends_the_attempt_in_its_own_words(algorithm: str) -> None:
    verdict = decide(algorithm, {"a": FAILS})
    assert (verdict.reason, verdict.message) == (
        "the scheduler fails with an error of extender a: it is down",
        "it is down",
    )
    assert verdict.extender_calls == [ExtenderCall("a", "filter", nodes_sent=2, error="it is down")]


@pytest.mark.parametrize(
    ("algorithm", "lands_on"),
    [
        pytest.param("kube-1.8", [], id="1.8 knows no such thing"),
        pytest.param("kube-1.13", ["n1"], id="1.13"),
        pytest.param("kube-1.18", ["n1"], id="1.18"),
    ],
)
def test_one_that_fails_may_be_ignored(algorithm: str, lands_on: list[str]) -> None:
    verdict = decide(algorithm, {"a": FAILS, "b": only("n1")}, ignorable=True)
    assert verdict.lands_on == lands_on
    assert [(each.error, each.ignored) for each in verdict.extender_calls][:1] == [("it is down", bool(lands_on))]


@pytest.mark.parametrize(
    ("algorithm", "requested"),
    [pytest.param("kube-1.13", ["a", "b"], id="1.13 in order"), pytest.param("kube-1.18", ["b", "a"], id="1.18 last")],
)
def test_ignorable_extenders_are_called_last_since_1_18(algorithm: str, requested: list[str]) -> None:
    answers = {"a": only("n1", "n2"), "b": only("n1", "n2")}
    extenders = [
        {"urlPrefix": each, "filterVerb": "f", "nodeCacheCapable": True, "ignorable": each == "a"} for each in answers
    ]
    verdict = decide(algorithm, answers, extenders=extenders)
    assert [each.extender for each in verdict.extender_calls] == requested


GPU = "example.com/gpu"
WITH_GPU = make_pod(
    "p",
    containers=[Container(resources=ResourceRequirements({"cpu": quantity("1"), GPU: quantity("1")}))],
)
MANAGED = [{"name": GPU, "ignoredByScheduler": True}]


@pytest.mark.parametrize(
    ("algorithm", "pod", "lands"),
    [
        pytest.param("kube-1.8", WITH_GPU, False, id="1.8 looks at all resources"),
        pytest.param("kube-1.13", WITH_GPU, True, id="1.13 leaves it to the extender"),
        pytest.param("kube-1.18", WITH_GPU, True, id="so does 1.18"),
        pytest.param("kube-1.13", make_pod("q", cpu="1"), True, id="a pod without it is not asked about"),
        pytest.param("kube-1.18", make_pod("q", cpu="9"), False, id="other resources count as ever"),
    ],
)
def test_a_resource_that_is_left_to_an_extender(algorithm: str, pod: Any, lands: bool) -> None:
    verdict = decide(algorithm, {"a": only("n1")}, pod=pod, managedResources=MANAGED)
    assert (verdict.outcome == Outcome.LANDS) is lands
    assert bool(verdict.extender_calls) is (lands and pod is WITH_GPU)


def test_a_resource_is_left_to_an_extender_that_is_not_called_and_in_the_default_profile() -> None:
    extender = {"urlPrefix": "http://x", "filterVerb": "f", "managedResources": MANAGED}
    scheduler = legacy_scheduler("kube-1.18", {"kind": "KubeSchedulerConfiguration", "extenders": [extender]})
    verdict = scheduler.decide(scheduler.prepare(EMPTY, now=NOW), WITH_GPU)
    assert verdict.lands_on == ["n1", "n2"]
    assert [each.field for each in verdict.assumptions] == ["extenders[0]", "spec"]
    assert "--call-extenders" in verdict.assumptions[0].message


@pytest.mark.parametrize(
    ("algorithm", "message"),
    [
        pytest.param("kube-1.8", "No nodes are available that match all of the predicates: no GPU (1).", id="1.8"),
        pytest.param("kube-1.13", "0/2 nodes are available: 1 no GPU.", id="1.13"),
        pytest.param("kube-1.18", "0/2 nodes are available: 1 no GPU.", id="1.18"),
    ],
)
def test_nodes_without_a_reason_are_not_counted_and_may_be_preempted(algorithm: str, message: str) -> None:
    verdict = decide(algorithm, {"a": only(n1="no GPU")})
    assert verdict.message == message
    assert [status.is_success for status in verdict.filter.values()] == [False, False]
    assert verdict.potential_nodes == ["n1", "n2"]
    assert verdict.extender_calls[0].rejected == {"n1": "no GPU", "n2": ""}


def test_reasons_of_several_extenders_and_of_nodes_that_there_are_not_are_counted() -> None:
    verdict = decide("kube-1.13", {"a": only("n2", n1="one", zz="far"), "b": only(n1="two", n2="two")})
    assert verdict.message == "0/2 nodes are available: 1 far, 1 one, 2 two."
    assert verdict.filter["n1"].reasons == ["one", "two"]
    assert list(verdict.filter) == ["n1", "n2"]


HALF = ClusterSnapshot(nodes=EMPTY.nodes, pods=[make_pod("q", node="n2", cpu="4", priority=9)])


@pytest.mark.parametrize("algorithm", OLD[:2])
def test_a_node_that_the_filters_refused_is_let_in_by_name_before_1_18(algorithm: str) -> None:
    verdict = decide(algorithm, {"a": fixed({"nodenames": ["n2"]})}, HALF)
    assert (verdict.lands_on, verdict.extender_calls[0].added) == (["n2"], ["n2"])
    assert verdict.filter["n2"].reasons == ["Insufficient cpu"]


def test_since_1_18_that_is_an_error() -> None:
    verdict = decide("kube-1.18", {"a": fixed({"nodenames": ["n2"]})}, HALF)
    assert verdict.message == 'extender "a" claims a filtered node "n2" which is not found in the input node list'


@pytest.mark.parametrize("algorithm", OLD[:2])
def test_a_name_that_is_unknown_ends_the_attempt(algorithm: str) -> None:
    verdict = decide(algorithm, {"a": fixed({"nodenames": ["zz"]})})
    assert verdict.message == f'extender a returned node "zz", which the scheduler does not know; {algorithm} panics'
    assert verdict.outcome == Outcome.UNSCHEDULABLE


@pytest.mark.parametrize("algorithm", OLD)
def test_a_whole_node_that_is_unknown_is_taken_as_it_is(algorithm: str) -> None:
    answer = fixed({"nodes": {"items": [{"metadata": {"name": "zz"}}]}})
    verdict = decide(algorithm, {"a": answer, "b": answer}, nodeCacheCapable=False)
    assert (verdict.lands_on, verdict.extender_calls[0].added) == (["zz"], ["zz"])
    assert any("zz, which is not in the cluster" in each.message for each in verdict.assumptions)


def preempting(**victims: list[str]) -> Answers:
    """Leaves these candidates with these victims, by their UIDs."""
    meta = {node: {"pods": [{"uid": f"uid-shop-{name}"} for name in names]} for node, names in victims.items()}
    return fixed({"nodeNameToMetaVictims": meta})


@pytest.mark.parametrize("algorithm", WITH_PREEMPTION)
def test_candidates_are_dropped_and_victims_changed(algorithm: str) -> None:
    assert decide(algorithm, {}, FULL).nominated_nodes == ["n1"]
    dropped = decide(algorithm, {"a": preempting(n2=["low-2"])}, FULL)
    assert (dropped.nominated_nodes, [each.node for each in dropped.candidates]) == (["n2"], ["n2"])
    assert dropped.extender_calls == [ExtenderCall("a", "preempt", nodes_sent=2, removed=["n1"])]
    assert [step.pod for step in dropped.candidates[0].steps] == ["shop/low-2"]
    changed = decide(algorithm, {"a": preempting(n1=["tiny-1", "low-1"], n2=["low-2"])}, FULL)
    assert [victim.pod for victim in changed.victims["n2"]] == ["shop/low-2"]
    [call] = changed.extender_calls
    assert call.changed == {"n1": ["shop/tiny-1", "shop/low-1"]}
    assert changed.candidates[0].victims == ["shop/tiny-1", "shop/low-1"]
    assert changed.candidates[0].steps == []


@pytest.mark.parametrize("algorithm", WITH_PREEMPTION)
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param(
            preempting(n1=["low-2"]),
            "extender: a claims to preempt pod (UID: &{uid-shop-low-2}) on node: n1, "
            "but the pod is not found on that node",
            id="a pod of another node",
        ),
        pytest.param(preempting(zz=[]), "zz", id="a node that there is not"),
        pytest.param(FAILS, "it is down", id="no answer"),
    ],
)
def test_a_lie_about_victims_ends_the_preemption(algorithm: str, answer: Answers, words: str) -> None:
    verdict = decide(algorithm, {"a": answer}, FULL)
    assert verdict.outcome == Outcome.UNSCHEDULABLE
    assert verdict.reason.startswith("preemption fails with an error: ")
    assert words in verdict.reason
    ignored = decide(algorithm, {"a": answer}, FULL, ignorable=True)
    assert ignored.nominated_nodes == ["n1"]
    assert ignored.extender_calls[0].ignored


def test_1_8_asks_about_the_chosen_node_alone() -> None:
    verdict = decide("kube-1.8", {"a": only("n2")}, FULL)
    assert verdict.nominated_nodes == ["n2"]
    assert [(each.nodes_sent, each.without_victims, each.rejected) for each in verdict.extender_calls] == [
        (1, True, {"n1": ""}),
        (1, True, {}),
    ]


def test_fields_of_1_8_are_read_as_they_are_written_and_no_others() -> None:
    extender = {"urlPrefix": "a", "FILTERVERB": "f", "weight": 1, "preemptVerb": "p"}
    assert decide("kube-1.8", {"a": FAILS}, FULL, extenders=[extender]).extender_calls == []
    assert decide("kube-1.13", {"a": FAILS}, EMPTY, extenders=[extender]).extender_calls[0].error == "it is down"


def test_scores_are_not_requested_and_that_is_said_where_they_would_decide() -> None:
    answers = {"a": only("n1", "n2")}
    assert [each.field for each in decide("kube-1.13", answers, prioritizeVerb="s").assumptions] == [
        "spec",
        "prioritizeVerb",
    ]
    assert decide("kube-1.13", {"a": only("n1")}, prioritizeVerb="s").assumptions == []


CONFIGURATION = {"kind": "KubeSchedulerConfiguration", "apiVersion": "kubescheduler.config.k8s.io/v1alpha2"}


def test_1_18_takes_extenders_of_its_configuration() -> None:
    stated = CONFIGURATION | {"extenders": [{"urlPrefix": "a", "filterVerb": "f", "nodeCacheCapable": True}]}
    requested = connecting({"a": only("n2")})
    scheduler = legacy_scheduler("kube-1.18", stated, connect=requested)
    assert scheduler.decide(scheduler.prepare(EMPTY, now=NOW), POD).lands_on == ["n2"]
    older = stated | {"apiVersion": "kubescheduler.config.k8s.io/v1alpha1"}
    assert [each.field for each in legacy_scheduler("kube-1.18", older, connect=requested).assumptions] == ["extenders"]
    # Those of a Policy file take their place.
    scheduler = legacy_scheduler("kube-1.18", stated, policy={"extenders": []}, connect=requested)
    assert scheduler.extenders == []


@pytest.mark.parametrize(
    ("extenders", "message"),
    [
        pytest.param(
            [{"prioritizeVerb": "s"}],
            "extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
            id="no weight",
        ),
        pytest.param({"a": 1}, "KubeSchedulerConfiguration: extenders: ", id="no list"),
        pytest.param([{"weight": "x"}], "KubeSchedulerConfiguration: extenders: ", id="a text for a number"),
        pytest.param(7, "KubeSchedulerConfiguration: extenders: ", id="a number"),
    ],
)
def test_extenders_that_1_18_refuses(extenders: Any, message: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        legacy_scheduler("kube-1.18", CONFIGURATION | {"extenders": extenders})
    assert refused.value.message.startswith(message)


def test_over_a_real_connection() -> None:
    with FakeExtender(good({"nodenames": ["n2"], "failedNodes": {"n1": "no GPU"}})) as server:
        extender = {"urlPrefix": server.url.replace("//", "//me:s3cret@"), "filterVerb": "f", "nodeCacheCapable": True}
        scheduler = legacy_scheduler(
            "kube-1.13", policy={"extenders": [extender]}, connect=partial(connect, environment={})
        )
        verdict = scheduler.decide(scheduler.prepare(EMPTY, now=NOW), POD)
    assert verdict.lands_on == ["n2"]
    assert server.requested[0].body["nodenames"] == ["n1", "n2"]
    assert verdict.extender_calls == [ExtenderCall(server.url, "filter", nodes_sent=2, rejected={"n1": "no GPU"})]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        pytest.param(ExtenderCall("x", "filter", nodes_sent=2), "x filter, 2 nodes: no change", id="no"),
        pytest.param(
            ExtenderCall("x", "filter", nodes_sent=3, rejected={"a": "full", "b": "", "c": "full"}, added=["z"]),
            "x filter, 3 nodes: rejects a and c: full; rejects b without a reason; adds z, which it was not sent",
            id="refusals",
        ),
        pytest.param(
            ExtenderCall("x", "filter", nodes_sent=1, rejected={"a": "gone"}, unresolvable=["a"]),
            "x filter, 1 node: rejects a: gone; preemption doesn't help on a",
            id="beyond eviction",
        ),
        pytest.param(
            ExtenderCall("x", "preempt", nodes_sent=2, removed=["a"], changed={"b": ["s/p"], "c": []}),
            "x preempt, 2 candidates: drops a; changes the victims on b to s/p; changes the victims on c to none",
            id="candidates",
        ),
        pytest.param(
            ExtenderCall("x", "filter", nodes_sent=1, without_victims=True, error="EOF", ignored=True),
            "x filter, 1 node without the victims: fails: EOF (ignored)",
            id="a failure",
        ),
        pytest.param(
            ExtenderCall("x", "prioritize", nodes_sent=2, scores={"a": 10, "b": 0}),
            "x prioritize, 2 nodes: scores a 10 and b 0",
            id="scores",
        ),
        pytest.param(
            ExtenderCall("x", "filter", nodes_sent=5, rejected={str(number): str(number) for number in range(5)}),
            "x filter, 5 nodes: rejects 0: 0; rejects 1: 1; rejects 2: 2; rejects 3 and 4 for 2 more reasons",
            id="many reasons",
        ),
    ],
)
def test_how_a_call_is_reported(call: ExtenderCall, words: str) -> None:
    assert plain(describe_call(call)) == words
