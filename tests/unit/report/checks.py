"""Answers of ``check`` for tests of its formats: one that passes, one that breaks every rule, one of hostile names."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.verdict import Assumption, ClusterSummary
from kpreempt.verdict.check import (
    Change,
    ChangeKind,
    Check,
    GateFinding,
    GateStanding,
    NodeRoom,
    OutcomeShare,
    RuleId,
    RuleResult,
)
from kpreempt.verdict.play import (
    BudgetLow,
    Displaced,
    Play,
    PlayEnd,
    PlayStep,
    StepKind,
    Stranded,
    StrandedKind,
    Waiting,
    WorkloadPlay,
)

# What a name could hold to break out of a format, to drive a terminal, or to mislead who reads it.
HOSTILE = (
    "esc\x1b[31m\x07",
    "nul\x00bell",
    "line\nfeed\r::error::x",
    "quo'te\"s",
    "cdata]]>end",
    "cmd::set-output name=a::b",
    "per%0Acent%25",
    "</script><img src=x onerror=alert(1)>",
    "pi|pe\\|slash",
    "tick`s``",
    "@everyone #1 !2 https://evil.example www.evil.example",
    "[link](https://evil.example)",
    "right\u202eleft\u2066\u200b",
    "sur\udc80rogate\ufffe",
    "/approve",
    "</details>",
    "x" * 5000,
)
_MIB = 1024**2


def replaced(check: Check, **fields: object) -> Check:
    """The check with other fields."""
    return msgspec.structs.replace(check, **fields)


def rule(rule_id: RuleId, **fields: object) -> RuleResult:
    """A rule that holds, unless ``fields`` say otherwise."""
    return RuleResult(rule=rule_id, **fields)  # type: ignore[arg-type]


def finding(rule_id: RuleId, subject: str = "cluster", **fields: object) -> GateFinding:
    """A finding with a fingerprint of its own."""
    fields.setdefault("fingerprint", f"{list(RuleId).index(rule_id):032x}")
    return GateFinding(rule=rule_id, subject=subject, **fields)  # type: ignore[arg-type]


API = Change(
    object="Deployment shop/api",
    kind=ChangeKind.ROLLED,
    strategy="RollingUpdate",
    replicas=3,
    replicas_before=2,
    fields=["spec.replicas", "spec.template.spec.containers[0].image"],
    source="./deploy/api v2.yaml",
    line=12,
)
WORKER = Change(
    object="Deployment batch/worker",
    kind=ChangeKind.SCALED,
    replicas=9,
    replicas_before=4,
    source="standard input",
    line=34,
    origin="chart/templates/worker.yaml",
)


def passed() -> Check:
    """A change of which every pod lands."""
    return Check(
        passed=True,
        algorithm="kube-1.36",
        cluster=ClusterSummary(nodes=3, pods=12),
        changes=[API, Change(object="Service shop/api", kind=ChangeKind.UNCHANGED)],
        rules=[
            rule(RuleId.MAX_PDB_VIOLATIONS, limit=0),
            rule(RuleId.MAX_VICTIMS, is_on=False),
            rule(RuleId.REQUIRE_SCHEDULABLE),
        ],
        findings=[],
        play=Play(
            end=PlayEnd.SETTLED,
            seconds=0.0,
            depth=0,
            starts_at={"shop/api-new-1": 0.0},
            displaced=[],
            waiting=[],
            budgets=[],
            workloads=[
                WorkloadPlay(
                    workload="Deployment shop/api",
                    is_changed=True,
                    wanted_before=2,
                    wanted_after=3,
                    ready_before=2,
                    ready_least=2,
                    ready_after=3,
                )
            ],
            steps=[
                PlayStep(at=0.0, kind=StepKind.SCALES, pod="shop/api-6", owner="Deployment api", replicas=3),
                PlayStep(at=0.0, kind=StepKind.ARRIVES, pod="shop/api-new-1", owner="ReplicaSet api-6"),
                PlayStep(
                    at=0.0,
                    kind=StepKind.LANDS,
                    pod="shop/api-new-1",
                    owner="ReplicaSet api-6",
                    node="node-a",
                    tied=["node-a", "node-b"],
                ),
            ],
        ),
        spare={"cpu": 2500, "memory": 3 * 1024 * _MIB},
    )


def failed() -> Check:
    """A change that breaks every rule, with one finding each that is waived, accepted or not new."""
    findings = _failures()
    waived = [
        finding(
            RuleId.MAX_VICTIMS_PER_WORKLOAD,
            "Deployment low/x",
            standing=GateStanding.WAIVED,
            amount=2,
            limit=1,
            change="Deployment shop/api",
            source="./deploy/api v2.yaml",
            line=12,
            reason="agreed with the batch team",
            by="./deploy/api v2.yaml:12",
            fingerprint="f1",
        ),
        finding(
            RuleId.MAX_VICTIMS_PER_WORKLOAD,
            "Deployment low/y",
            standing=GateStanding.ACCEPTED,
            amount=2,
            limit=1,
            reason="old debt",
            by="baseline.json",
            expires="2027-01-01",
            fingerprint="f2",
        ),
        finding(
            RuleId.MAX_VICTIMS_PER_WORKLOAD,
            "Deployment low/z",
            standing=GateStanding.NOT_NEW,
            amount=2,
            limit=1,
            fingerprint="f3",
        ),
    ]
    results = [
        rule(
            rule_id,
            limit=3600 if rule_id is RuleId.MAX_SNAPSHOT_AGE else 0,
            amount=2,
            failures=1,
            **({"waived": 1, "accepted": 1, "not_new": 1} if rule_id is RuleId.MAX_VICTIMS_PER_WORKLOAD else {}),
        )
        for rule_id in RuleId
    ]
    return replaced(
        passed(),
        passed=False,
        changes=[API, WORKER, Change(object="ConfigMap shop/old", kind=ChangeKind.DELETED)],
        rules=results,
        findings=[*findings, *waived],
        play=_displacing(),
        runs=50,
        seed=3,
        outcomes=[
            OutcomeShare(
                count=37,
                seed=3,
                end="Settled",
                victims={"Deployment batch/worker": 2},
                violations={"shop/api": 1},
                depth=2,
                fails=True,
            ),
            OutcomeShare(count=13, seed=1, end="Settled"),
        ],
        nodes=[
            NodeRoom(
                node="node-a",
                allocatable={"cpu": 4000, "memory": 8 * 1024 * _MIB, "pods": 110},
                before={"cpu": 1000, "memory": 512 * _MIB, "pods": 4},
                after={"cpu": 3500, "memory": 512 * _MIB, "pods": 5},
            )
        ],
        assumptions=[Assumption("Pod shop/api-new-1", "spec.resourceClaims", "devices are not allocated")],
    )


def _failures() -> list[GateFinding]:
    at_api = {"change": "Deployment shop/api", "source": "./deploy/api v2.yaml", "line": 12}
    at_worker = {
        "change": "Deployment batch/worker",
        "source": "standard input",
        "line": 34,
        "origin": "chart/templates/worker.yaml",
    }
    pods = ["batch/worker-a", "batch/worker-b"]
    return [
        finding(RuleId.MAX_PDB_VIOLATIONS, "PodDisruptionBudget batch/worker", amount=2, pods=pods, **at_api),
        finding(RuleId.MAX_VICTIMS, amount=2, pods=pods, **at_api),
        finding(RuleId.MAX_VICTIMS_PER_WORKLOAD, "Deployment batch/worker", amount=2, limit=1, pods=pods, **at_api),
        finding(
            RuleId.FORBID_VICTIMS, "Deployment batch/worker", amount=2, pods=pods, detail="namespace batch", **at_api
        ),
        finding(
            RuleId.REQUIRE_SCHEDULABLE,
            "Deployment batch/worker",
            amount=1,
            pods=["batch/worker-new-9"],
            detail="0/3 nodes are available: 3 Insufficient cpu.",
            **at_worker,
        ),
        finding(
            RuleId.MAX_CASCADE_DEPTH,
            "Deployment shop/api",
            amount=2,
            limit=1,
            chain=["shop/api-new-1", "batch/worker-a → batch/worker-new-2", "low/x-1 → low/x-new-3"],
            **at_api,
        ),
        finding(RuleId.MAX_PENDING, "Deployment low/x", amount=1, pods=["low/x-new-3"], detail="no room", since=45.0),
        finding(RuleId.MAX_STRANDED, "Service shop/api", amount=1, pods=["shop/api"]),
        finding(RuleId.LOST_PODS, "Pod batch/notebook", amount=1, pods=["batch/notebook"], **at_api),
        finding(RuleId.MAX_DELETIONS, "Deployment low/y", amount=1, pods=["low/y-1"], change="Namespace low"),
        finding(
            RuleId.QUOTA_REFUSALS,
            "Deployment shop/api",
            amount=1,
            detail="exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5",
            in_runs=13,
            of_runs=50,
            share=0.26,
            **at_api,
        ),
        finding(RuleId.FORBID_LOOPS, "Deployment low/x", amount=1, since=120.0),
        finding(RuleId.MAX_SNAPSHOT_AGE, amount=7200, limit=3600),
        finding(RuleId.BUDGETS_UNREADABLE, amount=1, detail="poddisruptionbudgets is forbidden"),
        finding(RuleId.OBJECTS_SET_ASIDE, "Pod shop/bad", amount=1, detail="spec: expected an object"),
        finding(
            RuleId.FIELDS_NOT_MODELLED, "Deployment shop/api", amount=1, detail="spec.resourceClaims: not allocated"
        ),
        finding(RuleId.OUTCOME_UNCERTAIN, amount=1, detail="it was broken off before it came to an end"),
    ]


def _displacing() -> Play:
    return Play(
        end=PlayEnd.LOOP,
        seconds=125.0,
        depth=2,
        starts_at={"shop/api-new-1": 30.0},
        displaced=[
            Displaced(
                pod="batch/worker-a",
                priority=10,
                node="node-a",
                cause="shop/api-new-1",
                owner="ReplicaSet worker-1",
                workload="Deployment batch/worker",
                violated=["batch/worker"],
                replacement="batch/worker-new-2",
                lands_on="node-b",
            ),
            Displaced(
                pod="low/x-1",
                priority=0,
                node="node-b",
                cause="batch/worker-new-2",
                depth=2,
                workload="Deployment low/x",
                replacement="low/x-new-3",
            ),
            Displaced(
                pod="batch/worker-b", priority=10, node="node-c", cause="shop/api-new-1", violated=["batch/worker"]
            ),
        ],
        waiting=[
            Waiting(pod="low/x-new-3", priority=0, workload="Deployment low/x", message="no room", was_running=True),
            Waiting(pod="batch/worker-new-9", priority=10, workload="Deployment batch/worker", message="no room"),
        ],
        budgets=[
            BudgetLow(budget="shop/api", before=1, least=1, after=1),
            BudgetLow(budget="batch/worker", before=0, least=0, after=0, violations=2),
        ],
        workloads=[
            WorkloadPlay(
                workload="Deployment low/x",
                ready_before=1,
                ready_least=0,
                least_at=45.0,
                ready_after=0,
                wanted_after=1,
                pending_after=1,
                victims=1,
            ),
            WorkloadPlay(
                workload="Deployment shop/api",
                is_changed=True,
                is_done=False,
                ready_before=2,
                ready_least=2,
                ready_after=2,
                wanted_after=3,
            ),
        ],
        stranded=[
            Stranded(kind=StrandedKind.SERVICE, subject="low/x", missing=["low/x-1"], since=45.0),
            Stranded(kind=StrandedKind.AFFINITY, subject="shop/cache-1", node="node-b", since=45.0, until=125.0),
            Stranded(kind=StrandedKind.DAEMON_SET, subject="sys/log", node="node-c", since=1.0),
        ],
        loop=["Deployment low/x"],
        steps=[
            PlayStep(at=0.0, kind=StepKind.SCALES, pod="shop/api-6", owner="Deployment api", replicas=1),
            PlayStep(at=0.0, kind=StepKind.ARRIVES, pod="shop/api-new-1", owner="ReplicaSet api-6"),
            PlayStep(at=0.0, kind=StepKind.NOMINATED, pod="shop/api-new-1", node="node-a"),
            PlayStep(
                at=0.0,
                kind=StepKind.LEAVES,
                pod="batch/worker-a",
                owner="ReplicaSet worker-1",
                node="node-a",
                cause="shop/api-new-1",
                violated=["batch/worker"],
            ),
            PlayStep(
                at=0.0,
                kind=StepKind.LEAVES,
                pod="batch/worker-b",
                owner="ReplicaSet worker-1",
                node="node-c",
                cause="shop/api-new-1",
                violated=["batch/worker"],
            ),
            PlayStep(
                at=0.0,
                kind=StepKind.ARRIVES,
                pod="batch/worker-new-2",
                owner="ReplicaSet worker-1",
                cause="batch/worker-a",
            ),
            PlayStep(at=30.0, kind=StepKind.GONE, pod="batch/worker-a", node="node-a"),
            PlayStep(at=30.0, kind=StepKind.LANDS, pod="shop/api-new-1", node="node-a"),
            *of_many(40, at=31.0, kind=StepKind.LEAVES, owner="ReplicaSet api-5", reason="scale-down"),
            PlayStep(at=125.0, kind=StepKind.WAITS, pod="low/x-new-3", message="0/3 nodes are available."),
        ],
    )


def of_many(number: int, **fields: object) -> list[PlayStep]:
    """A step of each of many equal pods, spread over five nodes."""
    return [
        PlayStep(pod=f"shop/api-old-{place:03}", node=f"node-{place % 5}", **fields)  # type: ignore[arg-type]
        for place in range(number)
    ]


def hostile(texts: Sequence[str] = HOSTILE) -> Check:
    """The failed one with a hostile name in every place for a text from the input."""
    check = failed()
    findings = [
        msgspec.structs.replace(
            each,
            subject=f"Deployment shop/{_of(texts, place)}",
            pods=[_of(texts, place), _of(texts, place + 1)],
            chain=[_of(texts, place), f"{_of(texts, place + 2)} → {_of(texts, place + 3)}", _of(texts, place)],
            change=_of(texts, place + 4),
            source=_of(texts, place) if place % 2 else "standard input",
            origin=_of(texts, place + 5),
            detail=_of(texts, place + 6),
            reason=_of(texts, place + 7),
            by=_of(texts, place + 8),
            expires=_of(texts, place + 9),
        )
        for place, each in enumerate(check.findings * ((len(texts) // len(check.findings)) + 1))
    ]
    play = msgspec.structs.replace(
        check.play,
        displaced=[
            msgspec.structs.replace(
                check.play.displaced[0],
                pod=text,
                node=text,
                cause=text,
                replacement=text,
                lands_on=text,
                violated=[text],
            )
            for text in texts
        ],
        waiting=[Waiting(pod=text, priority=0, message=text) for text in texts],
        budgets=[BudgetLow(budget=text, before=0, least=0, after=0) for text in texts],
        workloads=[WorkloadPlay(workload=text) for text in texts],
        stranded=[Stranded(kind=StrandedKind.SERVICE, subject=text, node=text, missing=[text]) for text in texts],
        loop=list(texts),
        steps=[
            PlayStep(
                at=float(place), kind=kind, pod=text, owner=text, node=text, cause=text, message=text, reason=reason
            )
            for place, text in enumerate(texts)
            for kind in StepKind
            for reason in ("", text)
        ],
    )
    return replaced(
        check,
        algorithm=texts[0],
        changes=[
            Change(object=text, kind=ChangeKind.ROLLED, strategy=text, source=text, origin=text, fields=[text])
            for text in texts
        ],
        findings=findings,
        play=play,
        outcomes=[OutcomeShare(count=1, seed=0, end=text, victims={text: 1}, pending={text: 1}) for text in texts],
        nodes=[NodeRoom(node=text, allocatable={}, before={}, after={}) for text in texts],
        spare=dict.fromkeys(texts, 1),
        assumptions=[Assumption(text, text, text) for text in texts],
    )


def _of(texts: Sequence[str], place: int) -> str:
    return texts[place % len(texts)]
