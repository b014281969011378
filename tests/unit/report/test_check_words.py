"""The sentences about what a gate finds, and where it is written."""

from __future__ import annotations

from html import unescape

import pytest

from kpreempt.gate_rules import OptionType, RuleId
from kpreempt.report.answers import render_answer
from kpreempt.report.blocks import Span
from kpreempt.report.check.facts import location_of, nearest_location, outcome_phrase, replicas_text, verdict_phrase
from kpreempt.report.check.words import (
    chain_phrase,
    finding_phrase,
    finding_text,
    status_phrase,
    waive_option,
)
from kpreempt.report.options import RenderOptions
from kpreempt.report.quoting import plain
from kpreempt.report.simulation_words import list_steps, summarize
from kpreempt.verdict.check import Change, ChangeKind, FindingStatus, GateFinding, OutcomeShare
from kpreempt.verdict.simulation import SimulationStep, StepKind
from tests.checks import API, HOSTILE, WORKER, failed, finding, hostile, of_many, passed, replaced, rule

WORKLOAD = "Deployment batch/worker"
FINDINGS = {
    "a budget that one pod breaks": (
        finding(RuleId.MAX_PDB_VIOLATIONS, "PodDisruptionBudget shop/api", amount=1, pods=["shop/a"]),
        "budget shop/api: 1 eviction beyond its allowed disruptions (limit 0): shop/a",
    ),
    "more pods than are named": (
        finding(RuleId.MAX_VICTIMS, amount=5, limit=2, pods=["a", "b", "c", "d", "e"]),
        "5 pods evicted (limit 2): a, b, c and 2 more",
    ),
    "victims of an override": (
        finding(RuleId.MAX_VICTIMS, "namespace shop", amount=3, limit=2),
        "namespace shop: 3 pods evicted (limit 2)",
    ),
    "a workload that loses pods": (
        finding(RuleId.MAX_VICTIMS_PER_WORKLOAD, WORKLOAD, amount=2, limit=1, pods=["a", "b"]),
        "Deployment batch/worker: 2 pods evicted (limit 1): a and b",
    ),
    "a protected workload": (
        finding(RuleId.FORBID_VICTIMS, WORKLOAD, amount=1, pods=["a"], detail="namespace batch"),
        "Deployment batch/worker is protected, but 1 pod is evicted: a; forbidden by namespace batch",
    ),
    "a pod without a node, with the scheduler's message": (
        finding(RuleId.REQUIRE_SCHEDULABLE, WORKLOAD, amount=1, pods=["a"], detail="0/3 nodes are available."),
        "Deployment batch/worker: 1 pod unschedulable: a; 0/3 nodes are available",
    ),
    "a chain": (
        finding(RuleId.MAX_CASCADE_DEPTH, WORKLOAD, amount=2, limit=1, chain=["p", "a → b", "c → d"]),
        "p preempts a; its replacement b preempts c: 2 evictions in a chain (limit 1)",
    ),
    "a cascade whose chain is not known": (
        finding(RuleId.MAX_CASCADE_DEPTH, WORKLOAD, amount=2, limit=1),
        "Deployment batch/worker: 2 evictions in a chain (limit 1)",
    ),
    "pods that ran and wait": (
        finding(RuleId.MAX_PENDING, WORKLOAD, amount=2, pods=["a", "b"], detail="no room"),
        "Deployment batch/worker: 2 replacement pods stay pending (limit 0): a and b; no room",
    ),
    "a service without pods": (
        finding(RuleId.MAX_BROKEN_DEPENDENCIES, "Service shop/api", amount=1, pods=["shop/api"]),
        "Service shop/api has no ready pod",
    ),
    "pods that miss others": (
        finding(RuleId.MAX_BROKEN_DEPENDENCIES, WORKLOAD, amount=2, pods=["a", "b"]),
        "Deployment batch/worker: 2 pods left without something they depend on: a and b",
    ),
    "a pod that nothing makes again": (
        finding(RuleId.LOST_PODS, "Pod shop/one", amount=1, pods=["shop/one"]),
        "Pod shop/one is evicted or deleted, and no controller recreates it (limit 0)",
    ),
    "a workload that goes with its namespace": (
        finding(RuleId.MAX_DELETIONS, WORKLOAD, amount=1, pods=["a", "b"], change="Namespace batch"),
        "Deployment batch/worker is deleted with Namespace batch (limit 0), 2 pods: a and b",
    ),
    "a workload that is pruned": (
        finding(RuleId.MAX_DELETIONS, WORKLOAD, amount=1, pods=["a"], change=WORKLOAD, detail="by --prune"),
        "Deployment batch/worker is deleted by --prune (limit 0), 1 pod: a",
    ),
    "a namespace that goes": (
        finding(RuleId.NAMESPACE_DELETION, "Namespace batch", detail="with everything in it: 5 pods"),
        "Namespace batch is deleted with everything in it: 5 pods",
    ),
    "a claim that goes": (
        finding(RuleId.VOLUME_DELETION, "PersistentVolumeClaim shop/data", detail="by --prune"),
        "PersistentVolumeClaim shop/data is deleted by --prune",
    ),
    "a service without an endpoint": (
        finding(RuleId.SERVICE_OUTAGE, "Service shop/api", detail="loses its 3 pods"),
        "Service shop/api loses its 3 pods",
    ),
    "a workload of no size": (
        finding(RuleId.SCALED_TO_ZERO, WORKLOAD, detail="3 → 0 pods"),
        "Deployment batch/worker is scaled to zero: 3 → 0 pods",
    ),
    "what a quota refuses": (
        finding(RuleId.QUOTA_REJECTIONS, WORKLOAD, amount=2, detail="exceeded quota: q, requested: pods=1"),
        "Deployment batch/worker: 2 pods rejected (limit 0); exceeded quota: q, requested: pods=1",
    ),
    "what is so in some of the simulations": (
        finding(RuleId.FORBID_LOOPS, WORKLOAD, amount=1, in_runs=7, of_runs=20, share=0.35),
        "in 7 of 20 runs: Deployment batch/worker never settles",
    ),
    "what is so in simulations that are not equally likely": (
        finding(RuleId.FORBID_LOOPS, WORKLOAD, amount=1, in_runs=1, of_runs=2, share=0.1),
        "in 1 of 2 runs (10% likely): Deployment batch/worker never settles",
    ),
    "a loop": (finding(RuleId.FORBID_LOOPS, WORKLOAD, amount=1), "Deployment batch/worker never settles"),
    "a workload without ready pods": (
        finding(RuleId.MIN_READY, WORKLOAD, amount=3, detail="0 of 3 ready"),
        "Deployment batch/worker drops to 0 of 3 ready (limit 0%)",
    ),
    "an apply that is refused": (
        finding(RuleId.APPLY_REJECTED, WORKLOAD, amount=1, detail="spec.selector: field is immutable"),
        "Deployment batch/worker cannot be applied: spec.selector: field is immutable",
    ),
    "a namespace that is not there": (
        finding(RuleId.APPLY_REJECTED, "Namespace x", amount=1, detail="neither in the cluster nor in the change"),
        "Namespace x does not exist: neither in the cluster nor in the change",
    ),
    "a namespace that is rejected itself": (
        finding(RuleId.APPLY_REJECTED, "Namespace x", amount=1, detail="unknown field metadata.label"),
        "Namespace x cannot be applied: unknown field metadata.label",
    ),
    "an API that goes": (
        finding(RuleId.REMOVED_API, "CronJob shop/c", detail="batch/v1beta1 is not served as of Kubernetes 1.25"),
        "CronJob shop/c uses a removed API version: batch/v1beta1 is not served as of Kubernetes 1.25",
    ),
    "a budget that blocks drains": (
        finding(RuleId.PDB_BLOCKS_DRAIN, "PodDisruptionBudget shop/api", detail="it allows no disruptions"),
        "PodDisruptionBudget shop/api blocks all drains: it allows no disruptions",
    ),
    "a PDB with a mistyped selector": (
        finding(RuleId.PDB_SELECTOR, "PodDisruptionBudget shop/api", detail="it selects no pod: app=apo"),
        "PodDisruptionBudget shop/api selects the wrong pods: it selects no pod: app=apo",
    ),
    "a PDB that allows nothing at night": (
        finding(RuleId.PDB_BLOCKS_AT_HPA_MINIMUM, "PodDisruptionBudget shop/api", detail="it allows no disruptions"),
        "PodDisruptionBudget shop/api blocks drains at an autoscaler's minimum: it allows no disruptions",
    ),
    "a loosened PDB": (
        finding(RuleId.PDB_WEAKENED, "PodDisruptionBudget shop/api", detail="allowed 0 disruptions, now 2"),
        "PodDisruptionBudget shop/api allowed 0 disruptions, now 2",
    ),
    "a lower priority": (
        finding(RuleId.PRIORITY_LOWERED, WORKLOAD, detail="had priority 100, now 0"),
        "Deployment batch/worker had priority 100, now 0",
    ),
    "a class in use": (
        finding(RuleId.PRIORITY_CLASS_IN_USE, "PriorityClass high", detail="is deleted, and pods are rejected"),
        "PriorityClass high is deleted, and pods are rejected",
    ),
    "another default class": (
        finding(RuleId.DEFAULT_PRIORITY_CHANGED, "PriorityClass all", detail="changes what pods get"),
        "PriorityClass all changes what pods get",
    ),
    "a higher quota": (
        finding(RuleId.QUOTA_LOOSENED, "ResourceQuota shop/q", detail="limited pods to 5, now 10"),
        "ResourceQuota shop/q limited pods to 5, now 10",
    ),
    "another label of a namespace": (
        finding(RuleId.NAMESPACE_RELABELED, "Namespace shop", detail="had team=a, now no team"),
        "Namespace shop had team=a, now no team",
    ),
    "a pod without its controller": (
        finding(RuleId.OWNER_REMOVED, "Pod shop/api-1", detail="had the controller ReplicaSet shop/api, now none"),
        "Pod shop/api-1 had the controller ReplicaSet shop/api, now none",
    ),
    "a budget that keeps a pod on a node": (
        finding(RuleId.DRAIN_INCOMPLETE, "PodDisruptionBudget shop/api", pods=["shop/api-1"], detail="it wants 1 of 1"),
        "PodDisruptionBudget shop/api blocks the eviction of shop/api-1: it wants 1 of 1",
    ),
    "a node that kubectl does not drain": (
        finding(RuleId.DRAIN_INCOMPLETE, "Node n1", pods=["shop/api-1"], detail="cannot delete Pods"),
        "Node n1 cannot be drained because of shop/api-1: cannot delete Pods",
    ),
    "a size that is taken from an autoscaler": (
        finding(RuleId.AUTOSCALED_REPLICAS, WORKLOAD, detail="the apply deletes 2 pods"),
        "Deployment batch/worker has its replicas reset: the apply deletes 2 pods",
    ),
    "an object that is written twice": (
        finding(RuleId.DUPLICATE_OBJECTS, WORKLOAD, detail="a.yaml:1 is superseded by a.yaml:9"),
        "Deployment batch/worker is in the change more than once: a.yaml:1 is superseded by a.yaml:9",
    ),
    "a workload that becomes a hook": (
        finding(RuleId.MAX_DELETIONS, WORKLOAD, amount=1, detail="by Helm, because helm.sh/hook: test makes it a hook"),
        "Deployment batch/worker is deleted by Helm, because helm.sh/hook: test makes it a hook (limit 0)",
    ),
    "a rollout that leaves old pods": (
        finding(RuleId.ROLLOUT_STUCK, WORKLOAD, detail="it is paused"),
        "Deployment batch/worker keeps old pods: it is paused",
    ),
    "pods that wait for a volume": (
        finding(RuleId.VOLUME_ATTACHED_ELSEWHERE, WORKLOAD, detail="batch/worker-1 on n2: attached to n1"),
        "Deployment batch/worker has pods that never get their volume: batch/worker-1 on n2: attached to n1",
    ),
    "pods that name their node": (
        finding(RuleId.BYPASSES_SCHEDULER, WORKLOAD, detail="node n9 does not exist"),
        "Deployment batch/worker bypasses the scheduler: node n9 does not exist",
    ),
    "pods that are adopted": (
        finding(RuleId.ADOPTED_PODS, "ReplicaSet batch/all", detail="batch/one; the controller then deletes it"),
        "ReplicaSet batch/all adopts objects without a controller: batch/one; the controller then deletes it",
    ),
    "a node of the change": (
        finding(RuleId.CREATED_NODES, "Node n9", detail="no kubelet runs there"),
        "Node n9 adds no capacity: no kubelet runs there",
    ),
    "custom resources that the dump lacks": (
        finding(RuleId.CUSTOM_RESOURCES, "Widget.example.com", detail="the dump has none"),
        "Widget.example.com is not compared: the dump has none",
    ),
    "an old snapshot": (
        finding(RuleId.MAX_SNAPSHOT_AGE, amount=7200, limit=300),
        "the snapshot is 120m old (limit 5m)",
    ),
    "a snapshot of unknown age": (
        finding(RuleId.MAX_SNAPSHOT_AGE, detail="the snapshot has no timestamp", limit=300),
        "the snapshot has no timestamp",
    ),
    "budgets that are forbidden": (
        finding(RuleId.PDBS_UNREADABLE, detail="HTTP 403"),
        "budgets could not be read: HTTP 403",
    ),
    "a kind that the dump has none of": (
        finding(RuleId.ABSENT_KINDS, "PodDisruptionBudget", detail="budgets may protect victims"),
        "PodDisruptionBudget may be missing from the snapshot: budgets may protect victims",
    ),
    "an autoscaler that goes too far": (
        finding(RuleId.AUTOSCALED_MAXIMUM, WORKLOAD, detail="HorizontalPodAutoscaler a/b: 2 more pods pending"),
        "Deployment batch/worker does not fit at the maxReplicas of HorizontalPodAutoscaler a/b: 2 more pods pending",
    ),
    "an object that is left out": (
        finding(RuleId.SKIPPED_OBJECTS, "Pod shop/bad", detail="spec: expected an object"),
        "Pod shop/bad is skipped: spec: expected an object",
    ),
    "a field that is not modelled": (
        finding(RuleId.UNMODELED_INPUT, WORKLOAD, detail="spec.x: not evaluated", pods=["a"]),
        "Deployment batch/worker is not fully modeled: a; spec.x: not evaluated",
    ),
    "an uncertain end": (
        finding(RuleId.OUTCOME_UNCERTAIN, detail="broken off"),
        "the outcome is uncertain: broken off",
    ),
}


@pytest.mark.parametrize(("about", "sentence"), FINDINGS.values(), ids=FINDINGS.keys())
def test_a_finding_is_one_sentence(about: GateFinding, sentence: str) -> None:
    assert finding_text(about) == sentence


def test_the_waiver_of_a_finding_can_be_pasted_into_a_shell() -> None:
    assert waive_option(finding(RuleId.MAX_PENDING, WORKLOAD)) == f"--waive 'max-pending={WORKLOAD}'"
    assert waive_option(finding(RuleId.MAX_PENDING, "a'b")) == "--waive 'max-pending=a'\"'\"'b'"


def test_what_helps_and_the_waiver_stand_next_to_a_finding() -> None:
    check = replaced(failed(), findings=[finding(RuleId.FORBID_LOOPS, WORKLOAD, amount=1)])
    for form in ("markdown", "html"):
        shown = unescape(render_answer(check, form, RenderOptions()))
        assert "Give these workloads the same priority" in shown
        assert f"--waive 'forbid-loops={WORKLOAD}'" in shown


@pytest.mark.parametrize("rule_id", RuleId)
def test_a_sentence_names_its_object_and_says_what_is_known(rule_id: RuleId) -> None:
    words = finding_text(finding(rule_id, WORKLOAD, amount=1, limit=60, pods=["batch/a"], detail="a detail"))
    assert WORKLOAD in words or rule_id in (RuleId.MAX_PDB_VIOLATIONS, RuleId.MAX_SNAPSHOT_AGE)
    assert "{" not in words


def test_every_rule_has_words_of_its_own_and_a_sentence() -> None:
    # The sentence of any other rule is on its page, where its example fails.
    special = {rule_id for rule_id in RuleId if not str(rule_id.row.sentence).startswith("{subject} ")}
    assert special <= {about.rule for about, _ in FINDINGS.values()}
    for rule_id in RuleId:
        row = rule_id.row
        assert row.example.explanation and row.example.fails and row.example.fix and row.sentence
        assert row.promise and row.meaning and row.advice
        assert bool(row.option) is (row.takes is not OptionType.NOTHING)
    assert len({rule_id.row.promise for rule_id in RuleId}) == len(RuleId)


CHAINS = {
    "nothing": ([], ""),
    "one eviction": (["p", "a"], "p preempts a"),
    "what is not replaced is followed by another": (["p", "a", "b → c"], "p preempts a; the next victim is b"),
    "a node takes its pods along": (["Node n1", "a → b", "c"], "Node n1 loses a; its replacement b preempts c"),
    "a long one is cut in the middle": (
        ["p", *(f"v{place} → r{place}" for place in range(9))],
        "p preempts v0; its replacement r0 preempts v1; its replacement r1 preempts v2; its replacement r2 preempts v3;"
        " its replacement r3 preempts v4; and so on for 4 more, ending with v8",
    ),
}


@pytest.mark.parametrize(("chain", "words"), CHAINS.values(), ids=CHAINS.keys())
def test_a_chain_is_described_link_by_link(chain: list[str], words: str) -> None:
    assert plain(chain_phrase(chain)) == words


@pytest.mark.parametrize("text", HOSTILE, ids=[f"hostile name {number}" for number in range(len(HOSTILE))])
def test_in_a_sentence_what_is_from_the_input_is_a_span_of_its_own(text: str) -> None:
    for about in hostile([text]).findings:
        own_words = "".join(part for part in finding_phrase(about) if not isinstance(part, Span))
        assert text not in own_words
        assert plain((own_words,)) == own_words


def test_a_long_message_is_cut_and_on_one_line() -> None:
    text = finding_text(finding(RuleId.PDBS_UNREADABLE, detail="a\n\n b " * 1000))
    assert text.startswith("budgets could not be read: a b a b")
    assert len(text) < 600
    assert text.endswith("…")


STANDINGS = {
    "one that fails has none": (FindingStatus.FAILS, ""),
    "waived": (FindingStatus.WAIVED, "waived by file until 2027-01-01: reason"),
    "accepted": (FindingStatus.ACCEPTED, "accepted by file until 2027-01-01: reason"),
    "not new": (FindingStatus.NOT_NEW, "not new: present without the change (file) until 2027-01-01: reason"),
}


@pytest.mark.parametrize(("standing", "words"), STANDINGS.values(), ids=STANDINGS.keys())
def test_what_does_not_count_says_why(standing: FindingStatus, words: str) -> None:
    about = finding(RuleId.MAX_VICTIMS, status=standing, by="file", expires="2027-01-01", reason="reason")
    assert plain(status_phrase(about)) == words


PLACES = {
    "a file and a line": ({"source": "a/b.yaml", "line": 3}, "a/b.yaml:3", "a/b.yaml", 3),
    "a file from here": ({"source": ".//./a.yaml", "line": 3}, "a.yaml:3", "a.yaml", 3),
    "a file of which the line is not known": ({"source": "a.yaml"}, "a.yaml", "a.yaml", 0),
    "a file above": ({"source": "../a.yaml", "line": 1}, "../a.yaml:1", "../a.yaml", 1),
    "an absolute one": ({"source": "/etc/a.yaml", "line": 1}, "/etc/a.yaml:1", "file:///etc/a.yaml", 1),
    "signs that mean something in a URI": (
        {"source": "ä b%#?:c.yaml", "line": 1},
        "ä b%#?:c.yaml:1",
        "%C3%A4%20b%25%23%3F%3Ac.yaml",
        1,
    ),
    "a rendered file keeps its own lines": (
        {"source": "out.yaml", "line": 9, "origin": "chart/a.yaml"},
        "out.yaml:9",
        "out.yaml",
        9,
    ),
    "a stream says what it was made from": (
        {"source": "standard input", "line": 9, "origin": "chart/a.yaml"},
        "chart/a.yaml (line 9 of standard input)",
        "chart/a.yaml",
        0,
    ),
    "a stream": ({"source": "standard input", "line": 9}, "line 9 of standard input", "", 0),
    "what a shell puts in place of a file": ({"source": "/dev/fd/63", "line": 9}, "line 9 of /dev/fd/63", "", 0),
    "nothing": ({}, "", "", 0),
    "a byte that is no text": ({"source": "a\udc80", "line": 1}, "a\\udc80:1", "a%ED%B2%80", 1),
}


@pytest.mark.parametrize(("fields", "text", "uri", "line"), PLACES.values(), ids=PLACES.keys())
def test_a_place_is_reported_and_referred_to(fields: dict[str, object], text: str, uri: str, line: int) -> None:
    place = location_of(finding(RuleId.MAX_VICTIMS, **fields))
    assert (place.text, place.uri, place.line) == (text, uri, line)


def test_without_a_place_that_of_its_change_counts_and_else_the_first() -> None:
    check = replaced(failed(), changes=[Change(object="A", kind=ChangeKind.CREATED), API, WORKER])
    assert nearest_location(finding(RuleId.MAX_VICTIMS), check, "-.yaml").path == "deploy/api v2.yaml"
    of_worker = finding(RuleId.MAX_VICTIMS, change="Deployment batch/worker")
    assert nearest_location(of_worker, check, "-.yaml").path == "chart/templates/worker.yaml"
    assert nearest_location(of_worker, replaced(check, changes=[]), "-.yaml").path == "-.yaml"


def test_a_verdict_counts_rules_and_what_is_forgiven() -> None:
    assert plain(verdict_phrase(passed())) == "All enabled rules pass"
    assert plain(verdict_phrase(failed())) == (
        f"{len(RuleId)} rules violated: max-pdb-violations, max-victims, max-victims-per-workload"
        f" and {len(RuleId) - 3} more;"
        " 3 findings waived, accepted or not new"
    )
    forgiven = [each for each in failed().findings if each.status is not FindingStatus.FAILS]
    assert plain(verdict_phrase(replaced(failed(), passed=True, findings=forgiven))) == (
        "No violations; 3 findings waived, accepted or not new"
    )


def test_a_time_limit_is_formatted_as_time() -> None:
    check = replaced(passed(), rules=[rule(RuleId.MAX_SNAPSHOT_AGE, limit=300), rule(RuleId.MAX_VICTIMS, limit=3000)])
    text = render_answer(check, "text", RenderOptions(verbose=True))

    assert "0s (limit 5m)" in text
    assert "0 (limit 3,000)" in text


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [
        (None, None, ""),
        (None, 1, "1 replica"),
        (2, 2, "2 replicas"),
        (1, 3, "1 → 3 replicas"),
        (3, None, "3 → ? replicas"),
    ],
)
def test_sizes_are_reported_if_they_are_known(before: int | None, after: int | None, text: str) -> None:
    change = Change(object="a", kind=ChangeKind.SCALED, replicas=after, replicas_before=before)
    assert replicas_text(change) == text


def test_an_outcome_says_how_often_it_comes_up_and_what_it_costs() -> None:
    share = OutcomeShare(
        count=37, seed=4, end="Settled", victims={"a": 1, "b": 2}, violations={"c": 1}, pending={"d": 1}, depth=2
    )
    assert plain(outcome_phrase(share, 50)) == (
        "in 37 of 50 runs (first with seed 4): settled, 3 pods evicted (b 2, a 1), 1 budget violation (c 1),"
        " 1 pod pending (d 1), cascade depth 2"
    )


def reported(steps: list[SimulationStep]) -> list[str]:
    return [f"{line.clock}|{plain(line.words)}" for line in summarize(steps)]


def test_fifty_equal_pods_are_one_line() -> None:
    steps = [
        *of_many(50, at=0.0, kind=StepKind.TERMINATING, owner="ReplicaSet api-5", reason="update"),
        *of_many(50, at=0.0, kind=StepKind.TERMINATED, owner="ReplicaSet api-5"),
        *of_many(50, at=61.0, kind=StepKind.CREATED, owner="ReplicaSet api-6"),
        *of_many(50, at=61.0, kind=StepKind.BOUND, owner="ReplicaSet api-6"),
    ]
    pods = "shop/api-old-000, shop/api-old-001, shop/api-old-002 and 47 more"
    assert reported(steps) == [
        f"0s|ReplicaSet api-5 deletes {pods} (old version)",
        f"|{pods} have terminated on node-0, node-1 and 3 more",
        f"1m01s|ReplicaSet api-6 creates {pods}",
        f"|{pods} land on node-0, node-1 and 3 more",
    ]
    assert len(list_steps(steps)) > 100


STEPS = {
    "a size": (
        {"kind": StepKind.SCALED, "owner": "Deployment api", "replicas": 0},
        "Deployment api scales shop/a to 0 replicas",
    ),
    "a size that nobody is known to set": ({"kind": StepKind.SCALED, "replicas": 1}, "shop/a is scaled to 1 replica"),
    "a pod of nobody": ({"kind": StepKind.CREATED}, "shop/a is created"),
    "a replacement": (
        {"kind": StepKind.CREATED, "owner": "ReplicaSet a", "cause": "shop/b"},
        "ReplicaSet a creates shop/a to replace shop/b",
    ),
    "an eviction": (
        {"kind": StepKind.TERMINATING, "cause": "shop/b", "violated": ["shop/p"], "owner": "ReplicaSet a"},
        "shop/a is preempted by shop/b, violating budget shop/p",
    ),
    "a deletion by a controller": (
        {"kind": StepKind.TERMINATING, "owner": "ReplicaSet a", "reason": "scale-down"},
        "ReplicaSet a deletes shop/a (scale-down)",
    ),
    "a deletion for another reason": ({"kind": StepKind.TERMINATING, "reason": "drain"}, "deleted: shop/a (drain)"),
    "a deletion without a reason": ({"kind": StepKind.TERMINATING}, "shop/a is deleted"),
    "a pod that cannot start": (
        {"kind": StepKind.BLOCKED, "node": "n1", "message": "no volume"},
        "shop/a cannot start on n1: no volume",
    ),
    "a pod that waits": ({"kind": StepKind.PENDING, "message": "no room"}, "shop/a stays pending: no room"),
}


@pytest.mark.parametrize(("fields", "words"), STEPS.values(), ids=STEPS.keys())
def test_a_step_is_reported(fields: dict[str, object], words: str) -> None:
    assert reported([SimulationStep(at=0.0, pod="shop/a", **fields)]) == [f"0s|{words}"]


def test_what_different_owners_do_is_distinguished() -> None:
    steps = [
        SimulationStep(at=0.0, kind=StepKind.CREATED, pod=pod, owner=owner)
        for pod, owner in (
            ("shop/a", "ReplicaSet a"),
            ("shop/b", "ReplicaSet b"),
            ("shop/c", "ReplicaSet a"),
            ("x/d", "ReplicaSet a"),
        )
    ]
    assert reported(steps) == [
        "0s|ReplicaSet a creates shop/a and shop/c",
        "|ReplicaSet b creates shop/b",
        "|ReplicaSet a creates x/d",
    ]


def test_nothing_is_reported_before_what_it_follows_from() -> None:
    steps = [
        SimulationStep(at=0.0, kind=kind, pod=pod, node="n1" if kind is StepKind.BOUND else "", replicas=2)
        for kind, pod in (
            (StepKind.CREATED, "shop/a"),
            (StepKind.BOUND, "shop/a"),
            (StepKind.CREATED, "shop/b"),
            (StepKind.SCALED, "shop/old"),
            (StepKind.TERMINATING, "shop/a"),
            (StepKind.BOUND, "shop/b"),
            (StepKind.BOUND, "shop/a"),
        )
    ]
    assert reported(steps) == [
        "0s|shop/a and shop/b are created",
        "|shop/a and shop/b land on n1",
        "|shop/old is scaled to 2 replicas",
        "|shop/a is deleted",
        "|shop/a lands on n1",
    ]
