"""The sentence with which every format of ``check`` begins."""

from __future__ import annotations

import msgspec
import pytest

from kpreempt.gate_rules import RuleId
from kpreempt.report.check.summary import summary
from kpreempt.verdict import Assumption
from kpreempt.verdict.check import Change, ChangeKind, Check, FindingStatus, OutcomeShare, Range
from kpreempt.verdict.simulation import (
    BrokenDependency,
    BrokenDependencyKind,
    BudgetMinimum,
    Displaced,
    QuotaRejection,
    SimulatedWorkload,
    SimulationEnd,
    SimulationStep,
    StepKind,
    UnscheduledPod,
)
from tests.checks import finding, hostile, passed, quiet_check, replaced, rule, whole_check

ROLLED = Change(object="Deployment shop/api", kind=ChangeKind.ROLLED, replicas=12)
CREATED = Change(object="Deployment shop/new", kind=ChangeKind.CREATED, replicas=1)
MAP = Change(object="ConfigMap shop/new", kind=ChangeKind.CREATED)
DOWN = SimulatedWorkload(workload="Deployment metrics/ingester", ready_before=2, ready_min=0, ready_after=2)


def of(**fields: object) -> Check:
    """A quiet check, of which the simulation has other fields."""
    check = quiet_check()
    return replaced(check, simulation=msgspec.structs.replace(check.simulation, **fields))


def evicted(number: int, **fields: object) -> list[Displaced]:
    return [
        Displaced(pod=f"shop/api-{each}", priority=0, node="n1", cause="shop/new", **fields)  # type: ignore[arg-type]
        for each in range(number)
    ]


def leaves(at: float, kind: StepKind, pod: str) -> SimulationStep:
    return SimulationStep(at=at, kind=kind, pod=pod, owner="ReplicaSet ingester-1", node="n1")


SMALLER = Change(object="Deployment a/b", kind=ChangeKind.SCALED, replicas=2, replicas_before=3)
GONE = Change(object="Deployment a/c", kind=ChangeKind.DELETED, replicas_before=2, pods=["a/c-1", "a/c-2"])

GAP = [
    leaves(5, StepKind.TERMINATING, "metrics/ingester-1-a"),
    leaves(5, StepKind.TERMINATING, "metrics/ingester-1-b"),
    leaves(35, StepKind.BOUND, "metrics/ingester-1-c"),
    leaves(40, StepKind.BOUND, "metrics/ingester-1-d"),
]

SENTENCES = {
    "nothing changes": (quiet_check(), "harmless: nothing changes; no pod is evicted"),
    "pods roll": (replaced(quiet_check(), changes=[ROLLED]), "harmless: 12 pods are replaced; no pod is evicted"),
    "pods are new": (replaced(quiet_check(), changes=[CREATED, MAP]), "harmless: 1 pod is created; no pod is evicted"),
    "an object of no pods": (replaced(quiet_check(), changes=[MAP]), "harmless: 1 object changes; no pod is evicted"),
    "several runs that do nothing": (
        replaced(quiet_check(), changes=[ROLLED], runs=20),
        "harmless: 12 pods are replaced; no pod is evicted in any of 20 runs",
    ),
    "a workload is down": (
        of(workloads=[DOWN], steps=GAP, seconds=40.0),
        "metrics/ingester is down for at least 30s",
    ),
    "a workload is down, the steps do not tell for how long": (
        of(workloads=[DOWN]),
        "metrics/ingester is down for a while",
    ),
    "a workload stays down": (
        of(workloads=[msgspec.structs.replace(DOWN, ready_after=0)], steps=GAP[:2]),
        "metrics/ingester goes down and stays down",
    ),
    "a workload that is scaled to zero is not down": (
        of(workloads=[msgspec.structs.replace(DOWN, ready_after=0, desired_after=0)]),
        "harmless: nothing changes; no pod is evicted",
    ),
    "pods are evicted": (of(displaced=evicted(42)), "42 pods are evicted"),
    "a pod is lost": (of(displaced=evicted(1, lost=True)), "1 pod is evicted and never recreated"),
    "pods go with their node": (
        of(displaced=evicted(2, with_node=True, lost=True)),
        "2 pods are lost with their node, 2 of them never recreated",
    ),
    "pods are evicted in another run only": (
        replaced(quiet_check(), runs=3, evictions=Range(min=0, max=2)),
        "up to 2 pods are evicted",
    ),
    "a budget breaks": (
        of(displaced=evicted(1), budgets=[BudgetMinimum(budget="shop/api", before=0, min=-1, after=0, violations=1)]),
        "1 pod is evicted; budget shop/api is violated",
    ),
    "pods stay pending": (
        of(pending=[UnscheduledPod(pod="a/b", priority=0), UnscheduledPod(pod="a/c", priority=0, was_running=True)]),
        "1 new pod stays pending; 1 previously running pod stays pending",
    ),
    "a pod that waited before is no news": (
        of(pending=[UnscheduledPod(pod="a/b", priority=0, pending_before=True)]),
        "harmless: nothing changes; no pod is evicted",
    ),
    "a quota refuses pods": (
        of(rejected=[QuotaRejection(workload="Deployment a/b", quota="a/q", message="", pods=2, rejected_after=2)]),
        "2 pods are rejected by quota",
    ),
    "a rollout does not complete": (
        of(workloads=[SimulatedWorkload(workload="StatefulSet a/b", is_changed=True, is_done=False)]),
        "the rollout of a/b does not complete",
    ),
    "the cluster never settles": (of(end=SimulationEnd.LOOP, loop=["Deployment a/b", "Deployment a/c"]),
        "a/b and a/c never settle"),
    "the end is not known": (of(end=SimulationEnd.ABORTED), "the final state is unknown"),
    "the API server refuses an object": (
        replaced(passed(), findings=[finding(RuleId.APPLY_REJECTED, "Deployment shop/api")], passed=False),
        "the API server rejects Deployment shop/api",
    ),
    "a rule is broken by nothing that hurts": (
        replaced(quiet_check(), findings=[finding(RuleId.MAX_SNAPSHOT_AGE)], passed=False),
        "the age of the snapshot is unknown; no pod is evicted",
    ),
    "something is not known, though it is waived": (
        replaced(
            quiet_check(), findings=[finding(RuleId.UNMODELED_INPUT, "x", status=FindingStatus.WAIVED)]
        ),
        "nothing changes; no pod is evicted (unverified: unmodeled-input)",
    ),
    "what the change takes away comes first": (
        replaced(
            of(displaced=evicted(1)),
            passed=False,
            findings=[
                finding(RuleId.NAMESPACE_DELETION, "Namespace shop"),
                finding(RuleId.SCALED_TO_ZERO, "Deployment a/b", pods=["a/b-1", "a/b-2", "a/b-3"]),
            ],
        ),
        "Namespace shop is deleted; Deployment a/b goes from 3 pods to 0; 1 pod is evicted",
    ),
    "what the change takes away, though it is waived": (
        replaced(
            quiet_check(),
            findings=[
                finding(RuleId.SERVICE_OUTAGE, f"Service a/{each}", pods=["a/b-1"], status=FindingStatus.WAIVED)
                for each in "xyz"
            ],
        ),
        "Service a/x, Service a/y and 1 more go from 1 pod to 0",
    ),
    "a suspended CronJob": (
        replaced(quiet_check(), findings=[finding(RuleId.SCALED_TO_ZERO, "CronJob a/b")], passed=False),
        "CronJob a/b is scaled to zero",
    ),
    "a workload gets fewer pods": (
        replaced(quiet_check(), changes=[SMALLER]),
        "1 workload is scaled down from 3 to 2; no pod is evicted",
    ),
    "objects are deleted by name": (
        replaced(quiet_check(), changes=[GONE, ROLLED]),
        "12 pods are replaced, 1 object is deleted with 2 pods; no pod is evicted",
    ),
    "objects stay that the manifests lack": (
        replaced(quiet_check(), changes=[ROLLED], only_in_base=["ConfigMap a/b"]),
        "12 pods are replaced; no pod is evicted; 1 object is only in the base",
    ),
    "the worst of several": (
        replaced(of(displaced=evicted(1)), runs=2, outcomes=[OutcomeShare(count=1, seed=0, end="Settled")] * 2),
        "in the worst of 2 runs, 1 pod is evicted",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("check", "sentence"), SENTENCES.values(), ids=SENTENCES)
def test_what_hurts_most_is_said_first(check: Check, sentence: str) -> None:
    assert summary(check) == sentence


NOT_HARMLESS = {
    "a finding that is waived": {"findings": [finding(RuleId.MAX_VICTIMS, status=FindingStatus.WAIVED)]},
    "a finding that warns": {"findings": [finding(RuleId.ROLLOUT_STUCK, status=FindingStatus.WARNS)]},
    "something that is not known": {"assumptions": [Assumption("Pod a/b", "spec", "not modeled")]},
    "a rule about damage that is off": {"rules": [rule(RuleId.SCALED_TO_ZERO, is_on=False)]},
    "a deletion": {"changes": [GONE]},
    "fewer replicas": {"changes": [SMALLER]},
    "fewer replicas of a new template": {"changes": [msgspec.structs.replace(SMALLER, kind=ChangeKind.ROLLED)]},
    "a DaemonSet on fewer nodes": {
        "simulation": {
            "workloads": [
                SimulatedWorkload(workload="DaemonSet a/b", is_changed=True, ready_before=3, ready_min=1, ready_after=1)
            ]
        }
    },
    "an object that only the base has": {"only_in_base": ["ConfigMap a/b"]},
    "something that is cut off": {
        "simulation": {"broken_dependencies": [BrokenDependency(kind=BrokenDependencyKind.SERVICE, subject="a/b")]}
    },
    "a pod that is evicted": {"simulation": {"displaced": evicted(1)}},
    "a gate that does not pass": {"passed": False},
}


@pytest.mark.parametrize("fields", NOT_HARMLESS.values(), ids=NOT_HARMLESS)
def test_any_doubt_or_loss_takes_the_word_harmless_away(fields: dict[str, object]) -> None:
    assert summary(quiet_check()).startswith("harmless: ")
    simulation = fields.get("simulation", {})
    others = {key: each for key, each in fields.items() if key != "simulation"}
    assert isinstance(simulation, dict)
    assert "harmless" not in summary(replaced(of(**simulation), **others))


def test_no_more_is_said_than_a_sentence_holds() -> None:
    assert summary(whole_check()).count(";") <= 3


def test_what_comes_from_the_input_is_harmless_in_it() -> None:
    reported = summary(hostile())
    assert reported.isprintable()
    assert len(reported) < 3000
