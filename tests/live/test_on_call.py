"""``kubectl kpreempt`` after a real eviction: its statements about past, present and future are true."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Collection, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml
import zstandard

from tests.live import eviction
from tests.live.eviction import BATCH, GPU, LAB, SHOP
from tests.live.observation import observe
from tests.live.patience import until
from tests.live.plane import VERSION, ControlPlane, Object, program
from tests.live.plugin import COMMAND, interrupted_watch, kubectl_kpreempt, needs_kubectl
from tests.live.rights import ROLES, bind
from tests.parity.reference import CHECKOUT

pytestmark = pytest.mark.live

READER = "reader"
# The times of the result itself, by field.
TIMES = ("at", "takenAt", "ageSeconds")
SHIFTED = {"startTime"}


class Situation(NamedTuple):
    """The cluster after the eviction, and a snapshot from before."""

    plane: ControlPlane
    before: Path

    def answer(self, *words: str | Path) -> Any:
        """The result as JSON, without assumptions."""
        ran = kubectl_kpreempt(self.plane.kubeconfig, *words, "-o", "json")
        assert (ran.code, ran.err) == (0, "")
        found = json.loads(ran.out)
        assert found.get("assumptions", []) == []
        return found


@pytest.fixture(scope="module")
def situation(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Situation]:
    """The eviction on a separate control plane; ``reader`` has the shipped role."""
    needs_kubectl()
    before = tmp_path_factory.mktemp("before") / "before.json.zst"
    with ControlPlane(program()) as plane:
        role = yaml.safe_load((CHECKOUT / "deploy" / "cluster-role.yaml").read_text(encoding="utf-8"))
        plane.request("POST", ROLES, role)
        bind(plane, role["metadata"]["name"], READER)
        eviction.play(plane, before)
        yield Situation(plane, before)


def test_the_event_s_preemptor_is_named_and_confirmed_from_before(situation: Situation) -> None:
    answer = situation.answer("who-evicted", "encode-1", "-n", BATCH, "--before", situation.before)
    event = eviction.events(situation.plane, "Preempted")["encode-1"]
    victim = eviction.current(situation.plane, eviction.RUNNING[0])["metadata"]
    checkout = eviction.current(situation.plane, eviction.CHECKOUT)
    assert (answer["victim"]["phase"], answer["victim"]["uid"]) == ("Terminating", victim["uid"])
    assert (answer["terminatingUntil"], answer["finalizers"]) == (victim["deletionTimestamp"], [eviction.FINALIZER])
    [preemption] = [each["preemption"] for each in answer["items"]]
    assert preemption["message"] == event["message"]
    assert preemption["message"] == f"Preempted by pod {checkout['metadata']['uid']} on node osprey-1"
    assert preemption["preemptor"] == {
        "pod": f"{SHOP}/checkout-1",
        "uid": checkout["metadata"]["uid"],
        "phase": "Pending",
        "nominatedNodeName": checkout["status"]["nominatedNodeName"],
        "priority": 1000,
    }
    assert (preemption["node"], preemption["otherVictims"]) == ("osprey-1", [f"{BATCH}/encode-2"])
    reconstruction = preemption["reconstruction"]
    assert (reconstruction["result"], reconstruction["nodes"]) == ("Confirmed", ["osprey-1"])
    assert reconstruction["victims"] == [f"{BATCH}/encode-1", f"{BATCH}/encode-2"]
    assert reconstruction["isPreemptorOverlaid"]


def test_a_pod_that_was_not_evicted(situation: Situation) -> None:
    assert situation.answer("who-evicted", "web-1", "-n", SHOP)["items"] == []
    ran = kubectl_kpreempt(situation.plane.kubeconfig, "who-evicted", "web-9", "-n", SHOP)
    assert (ran.code, ran.out) == (3, "")
    assert ran.message == (
        f'pod "web-9" in namespace "{SHOP}" not found, and no event is about it: '
        "API servers keep events for an hour by default"
    )


def test_pending_pods_wait_for_what_they_wait_for_in_the_order_of_the_queue(situation: Situation) -> None:
    items = {each["pod"]: each for each in situation.answer("pending")["items"]}
    tried = [f"{BATCH}/huge-1", f"{BATCH}/late-1", f"{BATCH}/late-2"]
    assert [(pod, item.get("position")) for pod, item in items.items()] == [
        (f"{SHOP}/checkout-1", 1),
        *zip(tried, (2, 3, 4), strict=True),
        (f"{SHOP}/elsewhere-1", None),
        (f"{SHOP}/gated-1", None),
    ]
    assert {items[pod]["state"] for pod in tried} <= {"BackingOff", "WaitsForChange"}
    assert [items[pod]["state"] for pod in items if pod not in tried] == ["WaitsForVictims", "NoScheduler", "Gated"]
    assert items[f"{SHOP}/gated-1"]["gates"] == [eviction.GATE]
    assert items[f"{SHOP}/elsewhere-1"]["cause"] == "nobodys-scheduler"
    waiting = items[f"{SHOP}/checkout-1"]
    assert waiting["nominatedNodeName"] == "osprey-1"
    for leaving, victim in zip(waiting["waitingFor"], eviction.RUNNING[:2], strict=True):
        metadata = eviction.current(situation.plane, victim)["metadata"]
        assert leaving["pod"] == f"{BATCH}/{metadata['name']}"
        assert leaving["until"] == metadata["deletionTimestamp"]
        assert seconds_between(leaving["since"], leaving["until"]) == eviction.GRACE_SECONDS
        assert (leaving["finalizers"], leaving["isPreempted"]) == (metadata.get("finalizers", []), True)


@pytest.mark.parametrize("pod", [eviction.HUGE, *eviction.LATE], ids=lambda pod: pod["metadata"]["name"])
def test_the_message_for_an_unschedulable_pod_matches_exactly(situation: Situation, pod: Object) -> None:
    items = situation.answer("pending", "-n", BATCH)["items"]
    [item] = [each for each in items if each["pod"].endswith(f"/{pod['metadata']['name']}")]
    assert item["outcome"] == "Unschedulable"
    assert item["message"] == item["schedulerMessage"] == eviction.rejection(situation.plane, pod)
    assert item["agreement"] == "Same"


def test_pending_pods_in_80_columns_begin_with_a_summary(situation: Situation) -> None:
    ran = kubectl_kpreempt(situation.plane.kubeconfig, "pending")
    lines = ran.out.splitlines()
    assert (ran.code, ran.err) == (0, "")
    assert max(map(len, lines)) <= 80
    assert len(lines) <= 22
    summary = " ".join(" ".join(lines[:4]).split())
    assert summary.startswith("6 pods pending: served in queue order, 4 stay pending (3: of 3 nodes, 2 are too")
    assert re.match(rf" *kube-{re.escape(VERSION)} · 3 nodes, \d+ pods · ", lines[-2])
    whole = kubectl_kpreempt(situation.plane.kubeconfig, "pending", "-v").out
    assert "scheduler message when it preempted: 0/3 nodes are available: 3" in whole
    assert "no node fits, even empty" in " ".join(whole.split())


def test_a_watch_looks_again_until_ctrl_c(situation: Situation) -> None:
    ran = interrupted_watch(situation.plane.kubeconfig, "-n", SHOP, looks=2)
    assert (ran.code, ran.err) == (130, "")


def test_the_priority_from_which_a_pod_is_at_risk_is_the_real_scheduler_s(situation: Situation) -> None:
    [item] = situation.answer("at-risk", "-n", LAB)["items"]
    assert item["pod"] == f"{LAB}/train-1"
    [threshold] = [each for each in item["thresholds"] if each["size"] == "own"]
    assert (threshold["anywhere"], threshold["onNode"]) == (501, 501)
    selected = situation.answer("explain", *threshold["options"])
    assert [each["pod"] for each in selected["victims"][item["node"]]] == [item["pod"]]
    requests = {"cpu": f"{threshold['requests']['cpu']}m", GPU: str(threshold["requests"][GPU])}
    try:
        below = observe(situation.plane, eviction.pod(LAB, "below", threshold["anywhere"] - 1, requests), set())
        assert (below.evicted, below.nominated_to, below.bound_to) == (set(), "", "")
        assert f"Insufficient {GPU}" in below.message
        above = observe(situation.plane, eviction.pod(LAB, "above", threshold["anywhere"], requests), {item["pod"]})
        assert (above.evicted, above.nominated_to) == ({item["pod"]}, item["node"])
    finally:
        for each in situation.plane.request("GET", f"/api/v1/namespaces/{LAB}/pods")["items"]:
            name = each["metadata"]["name"]
            situation.plane.request("DELETE", f"/api/v1/namespaces/{LAB}/pods/{name}?gracePeriodSeconds=0")
        eviction.create(situation.plane, eviction.RUNNING[-1])


def test_a_redacted_snapshot_has_the_same_results(situation: Situation, tmp_path: Path) -> None:
    manifest, dump, names = tmp_path / "pod.json", tmp_path / "ticket.json.zst", tmp_path / "names.json"
    # Its victims are protected by a budget: the other node only has terminating ones.
    manifest.write_text(json.dumps(eviction.pod(SHOP, "kingfisher-1", 1000, {"cpu": "3"})), encoding="utf-8")
    live = situation.answer("explain", "-f", manifest)
    assert (live["nominatedNodes"], live["outcome"]) == (["osprey-2"], "PreemptsViolatingBudgets")
    assert [victim["pod"] for victim in live["victims"]["osprey-2"]] == [f"{SHOP}/web-1", f"{SHOP}/web-2"]
    ran = kubectl_kpreempt(
        situation.plane.kubeconfig, "snapshot", "-f", manifest, "--to", dump, "--redact", "--redact-map", names
    )
    assert (ran.code, ran.out) == (0, "")
    pod, _, command = ran.err.splitlines()[-1].partition(": ")
    assert (pod, command.split()[:2]) == (f"to explain {SHOP}/kingfisher-1", list(COMMAND))
    original = json.loads(names.read_text(encoding="utf-8"))["names"]
    redacted = restored(situation.answer(*shlex.split(command)[2:]), original)
    for field in ("outcome", "nominatedNodes", "victims", "candidates", "choice", "message", "filter", "effects"):
        # A redacted dump has different times.
        assert timeless(redacted.get(field), SHIFTED) == timeless(live.get(field), SHIFTED), field
    assert live["candidates"][0]["numPDBViolations"] == 2


def test_no_name_is_in_a_redacted_snapshot(situation: Situation, tmp_path: Path) -> None:
    dump = tmp_path / "ticket.json.zst"
    ran = kubectl_kpreempt(situation.plane.kubeconfig, "snapshot", "--to", dump, "--redact")
    assert ran.code == 0
    with zstandard.open(dump, "rt", encoding="utf-8") as stream:
        text = stream.read()
    pods = situation.plane.request("GET", "/api/v1/pods")["items"]
    secrets = {each["metadata"][field] for each in pods for field in ("name", "namespace", "uid")}
    secrets |= {container["image"] for each in pods for container in each["spec"]["containers"]}
    secrets |= {"kestrel", "osprey", "heron", "example.com", "web-budget", "hunter2", "PASSWORD", "nobodys-scheduler"}
    secrets |= {eviction.FINALIZER, eviction.GATE, "level-", situation.plane.server}
    assert len(pods) == len(eviction.RUNNING) + 6
    assert sorted(each for each in secrets if each in text) == []


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["who-evicted", "encode-2", "-n", BATCH], id="who-evicted"),
        pytest.param(["pending"], id="pending"),
        pytest.param(["at-risk", "-A"], id="at-risk"),
        pytest.param(["explain", "pod/late-1", "-n", BATCH], id="explain"),
    ],
)
def test_the_shipped_role_is_enough_for_the_same_answer(situation: Situation, words: list[str]) -> None:
    def answers_are_equal() -> bool:
        return timeless(situation.answer(*words, "--as", READER)) == timeless(situation.answer(*words))

    # The scheduler may try a pod between the two.
    until(answers_are_equal, "the same answer")


def test_the_shipped_role_is_enough_for_the_same_snapshot(situation: Situation, tmp_path: Path) -> None:
    def objects(*options: str) -> list[str]:
        dump = tmp_path / "dump.jsonl"
        assert kubectl_kpreempt(situation.plane.kubeconfig, "snapshot", "--to", dump, *options).code == 0
        # The first line has the time of reading.
        return dump.read_text(encoding="utf-8").splitlines()[1:]

    until(lambda: objects("--as", READER) == objects(), "the same snapshot")


def seconds_between(begin: str, end: str) -> float:
    """The seconds between two API times."""
    return (datetime.fromisoformat(end) - datetime.fromisoformat(begin)).total_seconds()


def restored(value: Any, names: dict[str, str]) -> Any:
    """A value with the original names instead of the tokens."""
    tokens = re.compile("|".join(sorted(map(re.escape, names), key=len, reverse=True)))
    return json.loads(tokens.sub(lambda token: json.dumps(names[token[0]])[1:-1], json.dumps(value)))


def timeless(value: Any, times: Collection[str] = TIMES) -> Any:
    """A result without its own time, or without other ``times``."""
    if isinstance(value, dict):
        return {key: timeless(each, times) for key, each in value.items() if key not in times}
    return [timeless(each, times) for each in value] if isinstance(value, list) else value
