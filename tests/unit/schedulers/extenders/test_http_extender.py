"""What is sent to extenders, and what is made of their answers, in each version."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from msgspec.structs import replace

from kpreempt.model.pod import Container, ContainerPort, Pod, ResourceRequirements, TopologySpreadConstraint
from kpreempt.model.quantity import quantity
from kpreempt.schedulers.extender_protocol import (
    CURRENT,
    V1_8,
    V1_13,
    V1_18,
    Dialect,
    ExtenderError,
    ExtenderSettings,
    ExtenderStatusError,
    HttpExtender,
    NodeVictims,
    uid_of,
)
from kpreempt.schedulers.extender_protocol.http_extender import pod_document
from kpreempt.snapshot.decode import decode_object
from tests.factories import make_node, make_pod
from tests.strategies import incoming_pods

DIALECTS = {"1.8": V1_8, "1.13": V1_13, "1.18": V1_18, "1.36": CURRENT}
ALL = [pytest.param(dialect, id=name) for name, dialect in DIALECTS.items()]
WITH_PREEMPTION = [pytest.param(DIALECTS[name], id=name) for name in ("1.13", "1.18", "1.36")]
PREFIX = "http://me:s3cret@extender.example/v1/"
SHOWN = "http://extender.example/v1/"
NODES = [make_node("n1"), make_node("n2")]
POD = make_pod("p")


class CannedCall:
    """A call that returns the given answers, and records the requests."""

    def __init__(self, answer: object) -> None:
        self._answer = answer
        self.requested: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, url: str, body: bytes) -> bytes:
        self.requested.append((url, json.loads(body)))
        if isinstance(self._answer, Exception):
            raise self._answer
        return json.dumps(self._answer).encode()


def extender(dialect: Dialect, answer: object = None, **settings: Any) -> tuple[HttpExtender, CannedCall]:
    said = CannedCall(answer)
    verbs = {"filter_verb": "filter", "preempt_verb": "preempt", "prioritize_verb": "prioritize"}
    return HttpExtender(ExtenderSettings(**{"url_prefix": PREFIX, **verbs, **settings}), dialect, said), said


def names(dialect: Dialect, answer: object, **settings: Any) -> list[str]:
    requested, _ = extender(dialect, answer, **settings)
    return [each.name for each in requested.filter(POD, NODES).passing]


def using(*, requests: dict[str, str] | None = None, limits: dict[str, str] | None = None) -> Container:
    amounts = [{name: quantity(text) for name, text in (each or {}).items()} for each in (requests, limits)]
    return Container(name="app", resources=ResourceRequirements(*amounts))


# TestIsInterested of v1.13.12, v1.18.19 and v1.36.3.
@pytest.mark.parametrize("dialect", WITH_PREEMPTION)
@pytest.mark.parametrize(
    ("managed", "pod", "interested"),
    [
        pytest.param((), make_pod("p"), True, id="no managed resource is all pods"),
        pytest.param(("memory",), make_pod("p"), False, id="a pod without the resource"),
        pytest.param(
            ("memory",), make_pod("p", containers=[using(requests={"memory": "0"})]), True, id="a request of nothing"
        ),
        pytest.param(("memory",), make_pod("p", containers=[using(limits={"memory": "0"})]), True, id="a limit"),
        pytest.param(
            ("memory",), make_pod("p", init_containers=[using(requests={"memory": "0"})]), True, id="an init container"
        ),
    ],
)
def test_is_interested(dialect: Dialect, managed: tuple[str, ...], pod: Pod, interested: bool) -> None:
    assert extender(dialect, managed_resources=managed)[0].is_interested(pod) is interested


def test_1_8_asks_about_every_pod_and_never_about_victims() -> None:
    requested, _ = extender(V1_8, managed_resources=("memory",))
    assert requested.is_interested(POD)
    assert not requested.supports_preemption
    with pytest.raises(ExtenderError, match="preempt verb is not defined for extender"):
        requested.process_preemption(POD, {}, lambda _: [])


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize("cached", [False, True], ids=["sends nodes", "sends names"])
def test_what_a_filter_call_sends(dialect: Dialect, cached: bool) -> None:
    requested, said = extender(dialect, {"nodenames": ["n2"], "nodes": {"items": []}}, node_cache_capable=cached)
    requested.filter(POD, NODES)
    [(url, body)] = said.requested
    assert url == "http://me:s3cret@extender.example/v1/filter"
    old = dialect in (V1_8, V1_13)
    pod, nodes, node_names = ("pod", "nodes", "nodenames") if old else ("Pod", "Nodes", "NodeNames")
    assert body[pod]["metadata"]["uid"] == "uid-shop-p"
    assert body[pod]["spec"]["schedulerName"] == "default-scheduler"
    assert set(body) == ({pod, node_names if cached else nodes} if old else {pod, nodes, node_names})
    if cached:
        assert (body[node_names], body.get(nodes)) == (["n1", "n2"], None)
    else:
        assert [item["metadata"]["name"] for item in body[nodes]["items"]] == ["n1", "n2"]
        assert body[nodes]["items"][0]["status"]["allocatable"] == {"cpu": "4", "memory": "8Gi", "pods": "110"}
        assert body.get(node_names) is None


@pytest.mark.parametrize("dialect", ALL)
@pytest.mark.parametrize(
    ("cached", "answer", "passing"),
    [
        pytest.param(True, {"nodenames": ["n2"]}, ["n2"], id="names of one that has nodes itself"),
        pytest.param(True, {"nodenames": ["n2", "n1", "n2"]}, ["n2", "n1", "n2"], id="in its order, and twice"),
        pytest.param(True, {"nodenames": []}, [], id="an empty list is no node"),
        pytest.param(True, {"nodes": {"items": [{"metadata": {"name": "n1"}}]}}, ["n1"], id="it may send nodes"),
        pytest.param(
            True, {"nodenames": ["n2"], "nodes": {"items": [{"metadata": {"name": "n1"}}]}}, ["n2"], id="names go first"
        ),
        pytest.param(False, {"nodenames": ["n2"]}, [], id="names of another do not count"),
        pytest.param(False, {"nodes": {"items": [{"metadata": {"name": "zz"}}]}}, ["zz"], id="nodes as they are"),
        pytest.param(False, {}, [], id="nothing is no node"),
        pytest.param(False, {"failedNodes": {"n1": "no"}}, [], id="nor are the other nodes those that pass"),
    ],
)
def test_which_part_of_the_answer_counts(dialect: Dialect, cached: bool, answer: object, passing: list[str]) -> None:
    assert names(dialect, answer, node_cache_capable=cached) == passing


def test_a_node_comes_back_as_it_was_sent() -> None:
    requested, _ = extender(CURRENT, {"Nodes": {"items": [{"metadata": {"name": "n1", "labels": {"new": "label"}}}]}})
    [node] = requested.filter(POD, NODES).passing
    assert node.returned is not None
    assert node.returned.labels == {"new": "label"}


@pytest.mark.parametrize("dialect", ALL)
def test_a_name_that_was_not_sent(dialect: Dialect) -> None:
    if dialect in (V1_8, V1_13):
        assert names(dialect, {"NodeNames": ["zz"]}, node_cache_capable=True) == ["zz"]
        return
    with pytest.raises(ExtenderError) as refused:
        names(dialect, {"NodeNames": ["zz"]}, node_cache_capable=True)
    assert str(refused.value) == (
        f'extender "{SHOWN}" claims a filtered node "zz" which is not found in the input node list'
    )


def test_reasons_of_both_kinds() -> None:
    answer = {"failedNodes": {"n1": "full", "n2": "x"}, "failedAndUnresolvableNodes": {"n2": "no GPU"}}
    found = extender(CURRENT, answer)[0].filter(POD, NODES)
    assert (found.failed, found.unresolvable) == ({"n1": "full", "n2": "x"}, {"n2": "no GPU"})
    assert extender(V1_18, answer)[0].filter(POD, NODES).unresolvable == {}


@pytest.mark.parametrize("dialect", ALL)
def test_without_a_verb_no_extender_is_called(dialect: Dialect) -> None:
    requested, said = extender(dialect, filter_verb="", prioritize_verb="")
    answer = requested.filter(POD, NODES)
    assert ([each.name for each in answer.passing], answer.was_called) == (["n1", "n2"], False)
    assert requested.prioritize(POD, NODES) == [("n1", 0), ("n2", 0)]
    assert said.requested == []


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        pytest.param(V1_8, f"Failed filter with extender at URL {SHOWN}, code 503", id="1.8 names the prefix"),
        pytest.param(V1_13, f"Failed filter with extender at URL {SHOWN}filter, code 503", id="1.13"),
        pytest.param(V1_18, f"Failed filter with extender at URL {SHOWN}filter, code 503", id="1.18"),
        pytest.param(CURRENT, f"failed filter with extender at URL {SHOWN}filter, code 503", id="1.36"),
    ],
)
def test_another_status(dialect: Dialect, message: str) -> None:
    with pytest.raises(ExtenderError) as refused:
        names(dialect, ExtenderStatusError(503))
    assert str(refused.value) == message


@pytest.mark.parametrize(
    ("text", "formatted"),
    [
        pytest.param("it is down", "it is down", id="plain"),
        pytest.param("100%", "100%!(NOVERB)", id="a percent sign at the end"),
        pytest.param("50% full", "50%!f(MISSING)ull", id="one before"),
        pytest.param("%v and %%", "%!v(MISSING) and %", id="a verb"),
    ],
)
def test_an_error_of_its_own_is_taken_for_a_format_before_1_36(text: str, formatted: str) -> None:
    for dialect, message in ((V1_18, formatted), (CURRENT, text)):
        with pytest.raises(ExtenderError) as refused:
            names(dialect, {"error": text, "nodenames": ["n1"]})
        assert str(refused.value) == message


def pods(*uids: str) -> list[Pod]:
    made = [make_pod(f"pod-{uid}") for uid in uids]
    return [replace(pod, metadata=replace(pod.metadata, uid=uid)) for pod, uid in zip(made, uids, strict=True)]


ON_NODES = {"n1": pods("1", "3"), "n2": pods("2", "4")}
CANDIDATES = {"n2": NodeVictims(ON_NODES["n2"], 2), "n1": NodeVictims(ON_NODES["n1"], 1)}


def preempt(dialect: Dialect, answer: object, **settings: Any) -> dict[str, tuple[list[str], int]]:
    requested, _ = extender(dialect, {"NodeNameToMetaVictims": answer}, **settings)
    found = requested.process_preemption(POD, CANDIDATES, ON_NODES.get)
    return {node: ([pod.metadata.uid for pod in each.pods], each.num_violations) for node, each in found.items()}


def meta(*uids: str, violations: int = 0) -> dict[str, Any]:
    return {"Pods": [{"UID": uid} for uid in uids], "NumPDBViolations": violations}


@pytest.mark.parametrize("dialect", WITH_PREEMPTION)
@pytest.mark.parametrize("cached", [False, True], ids=["sends pods", "sends UIDs"])
def test_what_a_preemption_call_sends(dialect: Dialect, cached: bool) -> None:
    """TestConvertToMetaVictims (v1.36.3), whose numbers of violations the older versions forget."""
    requested, said = extender(dialect, {}, node_cache_capable=cached)
    requested.process_preemption(POD, CANDIDATES, ON_NODES.get)
    [(url, body)] = said.requested
    assert url.endswith("/v1/preempt")
    old = dialect is V1_13
    sent = body[dialect.names.meta_victims if cached else dialect.names.victims]
    assert list(sent) == ["n1", "n2"]
    uid, violations, of = ("uid", "numPDBViolations", "pods") if old else ("UID", "NumPDBViolations", "Pods")
    found = [pod[uid] if cached else pod["metadata"]["uid"] for pod in sent["n1"][of]]
    assert found == ["1", "3"]
    assert [each[violations] for each in sent.values()] == ([0, 0] if cached and dialect is not CURRENT else [1, 2])
    assert len(body) == (2 if old else 3)


@pytest.mark.parametrize("dialect", WITH_PREEMPTION)
def test_victims_are_found_by_their_uids(dialect: Dialect) -> None:
    """TestConvertToVictims (v1.36.3)."""
    counted = dialect is CURRENT
    answer = {"n1": meta("3", "1", violations=1), "n2": meta("2", violations=-2)}
    assert preempt(dialect, answer) == {
        "n2": (["2"], -2 if counted else 0),
        "n1": (["3", "1"], 1 if counted else 0),
    }


@pytest.mark.parametrize("dialect", WITH_PREEMPTION)
@pytest.mark.parametrize(
    ("answer", "left"),
    [
        pytest.param({}, {}, id="all candidates are dropped"),
        pytest.param({"n1": meta()}, {"n1": ([], 0)}, id="a node without victims"),
        pytest.param({"n1": meta("1", "1")}, {"n1": (["1", "1"], 0)}, id="a victim twice"),
    ],
)
def test_what_is_left_of_the_candidates(dialect: Dialect, answer: object, left: object) -> None:
    assert preempt(dialect, answer) == left


@pytest.mark.parametrize("dialect", WITH_PREEMPTION)
def test_a_pod_that_is_not_on_the_node(dialect: Dialect) -> None:
    with pytest.raises(ExtenderError) as refused:
        preempt(dialect, {"n1": meta("2")})
    assert str(refused.value) == (
        f"extender: {SHOWN} claims to preempt pod (UID: &{{2}}) on node: n1, but the pod is not found on that node"
    )


@pytest.mark.parametrize(
    ("dialect", "message"),
    [
        pytest.param(
            V1_13,
            f"extender: {SHOWN} claims to preempt on node: zz but the node is not found in nodeNameToInfo map",
            id="1.13",
        ),
        pytest.param(V1_18, 'nodeinfo not found for node name "zz"', id="1.18"),
        pytest.param(CURRENT, 'nodeinfo not found for node name "zz"', id="1.36"),
    ],
)
def test_a_node_that_there_is_not(dialect: Dialect, message: str) -> None:
    with pytest.raises(ExtenderError) as refused:
        preempt(dialect, {"zz": meta()})
    assert str(refused.value) == message


def test_pods_without_a_uid_go_by_their_names() -> None:
    made = [make_pod("a"), make_pod("b")]
    victims = [replace(pod, metadata=replace(pod.metadata, uid="")) for pod in made]
    requested, said = extender(CURRENT, {"NodeNameToMetaVictims": {"n1": meta("shop/b")}}, node_cache_capable=True)
    found = requested.process_preemption(POD, {"n1": NodeVictims(victims)}, {"n1": victims}.get)
    assert [pod.key for pod in found["n1"].pods] == ["shop/b"]
    assert said.requested[0][1]["NodeNameToMetaVictims"]["n1"]["Pods"] == [{"UID": "shop/a"}, {"UID": "shop/b"}]


def test_scores() -> None:
    requested, said = extender(CURRENT, [{"Host": "n2", "Score": 7}])
    assert requested.prioritize(POD, NODES) == [("n2", 7)]
    assert said.requested[0][0].endswith("/v1/prioritize")


def test_a_pod_is_sent_with_what_the_api_server_fills_in() -> None:
    spread = TopologySpreadConstraint(max_skew=1, topology_key="zone")
    container = Container(name="app", ports=[ContainerPort(container_port=80)], image="app:1")
    pod = make_pod("p", priority=0, containers=[container], topology_spread_constraints=[spread])
    sent = pod_document(pod)
    assert sent["spec"]["containers"] == [
        {"name": "app", "image": "app:1", "ports": [{"containerPort": 80, "protocol": "TCP"}]}
    ]
    assert sent["spec"]["topologySpreadConstraints"][0]["whenUnsatisfiable"] == "DoNotSchedule"
    assert (sent["spec"]["priority"], sent["spec"]["schedulerName"]) == (0, "default-scheduler")
    assert decode_object("Pod", sent) == pod


@given(incoming_pods(4, rich=True))
@settings(max_examples=60)
def test_a_pod_that_is_sent_says_all_that_the_record_does(document: dict[str, Any]) -> None:
    pod = decode_object("Pod", document)
    assert isinstance(pod, Pod)
    sent = json.loads(msgspec.json.encode(pod_document(pod)))
    read = decode_object("Pod", sent)
    assert isinstance(read, Pod)
    assert read.metadata.uid == uid_of(pod)
    assert replace(read, metadata=replace(read.metadata, uid=pod.metadata.uid)) == pod
