"""Simulates written down by hand, for the rules to be put to."""

from __future__ import annotations

from datetime import date

from kpreempt.analysis.check.gate import Facts, GateRules, Suppressions, evaluate
from kpreempt.verdict.check import Change, ChangeKind, FindingStatus, GateFinding, RuleId, RuleResult
from kpreempt.verdict.simulation import (
    BrokenDependency,
    BrokenDependencyKind,
    BudgetMinimum,
    Displaced,
    SimulatedWorkload,
    Simulation,
    SimulationEnd,
    SimulationStep,
    StepKind,
    UnscheduledPod,
)

TODAY = date(2026, 11, 21)
LIVE = Facts(is_live=True)
NO_EXCUSES = Suppressions(today=TODAY)
API = Change(object="Deployment shop/api", kind=ChangeKind.ROLLED, source="k8s/api.yaml", line=7)
WEB = Change(object="Deployment shop/web", kind=ChangeKind.SCALED, source="k8s/web.yaml", line=1)
# What every simulation has: the ReplicaSets of the Deployments api and web, and their first pods.
STEPS = [
    SimulationStep(at=0, kind=StepKind.SCALED, pod="shop/api-2", owner="Deployment api", replicas=2),
    SimulationStep(at=0, kind=StepKind.SCALED, pod="shop/web-2", owner="Deployment web", replicas=2),
    SimulationStep(at=1, kind=StepKind.CREATED, pod="shop/api-2-new-1", owner="ReplicaSet api-2"),
    SimulationStep(at=1, kind=StepKind.CREATED, pod="shop/web-2-new-2", owner="ReplicaSet web-2"),
]


def victim(
    pod: str, workload: str, *, of: str = "shop/api-2-new-1", depth: int = 1, violated: str = "", becomes: str = ""
) -> Displaced:
    """A pod that goes for the first new pod of api, if nothing else is said."""
    return Displaced(
        pod=pod,
        priority=0,
        node="n1",
        cause=of,
        depth=depth,
        workload=workload,
        violated=[violated] if violated else [],
        replacement=becomes,
        lands_on="n2" if becomes else "",
    )


def leaves(pod: str, at: float, *, of: str = "shop/api-2-new-1") -> SimulationStep:
    return SimulationStep(at=at, kind=StepKind.TERMINATING, pod=pod, cause=of)


def simulation(
    *displaced: Displaced,
    end: SimulationEnd = SimulationEnd.SETTLED,
    waiting: list[UnscheduledPod] | None = None,
    budgets: list[BudgetMinimum] | None = None,
    workloads: list[SimulatedWorkload] | None = None,
    stranded: list[BrokenDependency] | None = None,
    loop: list[str] | None = None,
    steps: list[SimulationStep] | None = None,
) -> Simulation:
    return Simulation(
        end=end,
        seconds=90,
        depth=max((each.depth for each in displaced), default=0),
        starts_at={},
        displaced=list(displaced),
        pending=waiting or [],
        budgets=budgets or [],
        workloads=workloads or [],
        broken_dependencies=stranded or [],
        loop=loop or [],
        steps=[*STEPS, *(steps or [])],
    )


def put(
    found: Simulation,
    limits: dict[RuleId, int | None] | None = None,
    *,
    changes: tuple[Change, ...] = (API, WEB),
    facts: Facts = LIVE,
    suppressions: Suppressions = NO_EXCUSES,
    **rules: object,
) -> tuple[list[RuleResult], list[GateFinding]]:
    """The rules with these limits, put to the simulation."""
    return evaluate(found, changes, facts, GateRules(limits=limits or {}, **rules), suppressions)  # type: ignore[arg-type]


def reported(findings: list[GateFinding]) -> list[str]:
    """The findings in short: rule, subject, amount, limit, the change behind, and what it counts for."""
    return [
        f"{each.rule} {each.subject} {each.amount}>{each.limit} by {each.change or 'none'}"
        + ("" if each.status is FindingStatus.FAILS else f" {each.status}")
        for each in findings
    ]


def stranded_service(until: float | None = None, ready_before: int = 2) -> BrokenDependency:
    return BrokenDependency(
        kind=BrokenDependencyKind.SERVICE,
        subject="shop/front",
        missing=["shop/db-0"],
        since=12,
        until=until,
        ready_before=ready_before,
    )


def waits(pod: str, workload: str, **more: object) -> UnscheduledPod:
    return UnscheduledPod(pod=pod, priority=0, workload=workload, message="0/3 nodes are available.", **more)  # type: ignore[arg-type]
