"""Results of ``check`` for tests of its formats: passing ones, one with something in every part, one that breaks every
rule, ones of hostile names, and a very large one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import timedelta

import msgspec

from kpreempt.verdict import Assumption, ClusterSummary
from kpreempt.verdict.check import (
    Change,
    ChangeKind,
    Check,
    FindingStatus,
    GateFinding,
    NodeUtilization,
    OutcomeShare,
    Range,
    RuleId,
    RuleResult,
)
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
from tests.factories import NOW

# Names that could break out of a format, drive a terminal, or mislead a reader.
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
# A name that breaks out of every place in a page if it can, and one that reverses the text direction.
MARKUP = "</title></style></script><script>document.title='pwned'</script><img src=x onerror=alert(1)>\"'&amp;--><!--"
TURNED = "shop/\u202eevil\u2066\x1b[31m\x00"
_GI = 2**30


def replaced(check: Check, **fields: object) -> Check:
    """The check with other fields."""
    return msgspec.structs.replace(check, **fields)


def rule(rule_id: RuleId, **fields: object) -> RuleResult:
    """A rule that holds, unless ``fields`` change that."""
    return RuleResult(rule=rule_id, **fields)  # type: ignore[arg-type]


def finding(rule_id: RuleId, subject: str = "cluster", **fields: object) -> GateFinding:
    """A finding with a unique fingerprint."""
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
    """A change of which every pod is placed."""
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
        simulation=Simulation(
            end=SimulationEnd.SETTLED,
            seconds=0.0,
            depth=0,
            starts_at={"shop/api-new-1": 0.0},
            displaced=[],
            pending=[],
            budgets=[],
            workloads=[
                SimulatedWorkload(
                    workload="Deployment shop/api",
                    is_changed=True,
                    desired_before=2,
                    desired_after=3,
                    ready_before=2,
                    ready_min=2,
                    ready_after=3,
                )
            ],
            steps=[
                SimulationStep(at=0.0, kind=StepKind.SCALED, pod="shop/api-6", owner="Deployment api", replicas=3),
                SimulationStep(at=0.0, kind=StepKind.CREATED, pod="shop/api-new-1", owner="ReplicaSet api-6"),
                SimulationStep(
                    at=0.0,
                    kind=StepKind.BOUND,
                    pod="shop/api-new-1",
                    owner="ReplicaSet api-6",
                    node="node-a",
                    tied=["node-a", "node-b"],
                ),
            ],
        ),
        free={"cpu": 2500, "memory": 3 * _GI},
    )


def failed() -> Check:
    """A change that breaks every rule, with one finding each that is waived, accepted or not new."""
    findings = _failures()
    waived = [
        finding(
            RuleId.MAX_VICTIMS_PER_WORKLOAD,
            "Deployment low/x",
            status=FindingStatus.WAIVED,
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
            status=FindingStatus.ACCEPTED,
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
            status=FindingStatus.NOT_NEW,
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
    whole = whole_check()
    return replaced(
        whole,
        changes=[API, WORKER, Change(object="ConfigMap shop/old", kind=ChangeKind.DELETED)],
        rules=results,
        findings=[*findings, *waived],
        simulation=msgspec.structs.replace(
            whole.simulation,
            end=SimulationEnd.LOOP,
            loop=["Deployment batch/crunch"],
            broken_dependencies=[
                *whole.simulation.broken_dependencies,
                BrokenDependency(kind=BrokenDependencyKind.DAEMON_SET, subject="sys/log", node="node-c", since=1.0),
            ],
            steps=[
                *whole.simulation.steps,
                *of_many(40, at=95.0, kind=StepKind.TERMINATING, owner="ReplicaSet api-5", reason="scale-down"),
            ],
        ),
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
    found = [
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
        finding(RuleId.MAX_BROKEN_DEPENDENCIES, "Service shop/api", amount=1, pods=["shop/api"]),
        finding(RuleId.LOST_PODS, "Pod batch/notebook", amount=1, pods=["batch/notebook"], **at_api),
        finding(RuleId.MAX_DELETIONS, "Deployment low/y", amount=1, pods=["low/y-1"], change="Namespace low"),
        finding(RuleId.NAMESPACE_DELETION, "Namespace low", amount=1, detail="with everything in it: 5 pods"),
        finding(RuleId.VOLUME_DELETION, "PersistentVolumeClaim low/data", amount=1, detail="by --prune"),
        finding(RuleId.SERVICE_OUTAGE, "Service low/y", amount=1, pods=["low/y-1"], detail="loses its 1 pod"),
        finding(RuleId.SCALED_TO_ZERO, "Deployment low/z", amount=1, pods=["low/z-1"], detail="1 → 0 pods"),
        finding(
            RuleId.QUOTA_REJECTIONS,
            "Deployment shop/api",
            amount=1,
            detail="exceeded quota: q, requested: pods=1, used: pods=5, limited: pods=5",
            in_runs=13,
            of_runs=50,
            share=0.26,
            **at_api,
        ),
        finding(RuleId.FORBID_LOOPS, "Deployment low/x", amount=1, since=120.0),
        finding(RuleId.MIN_READY, "Deployment shop/api", amount=3, detail="0 of 3 ready", **at_api),
        finding(RuleId.APPLY_REJECTED, "Deployment shop/api", amount=1, detail="spec.selector: immutable", **at_api),
        finding(RuleId.REMOVED_API, "PodDisruptionBudget shop/api", amount=1, detail="policy/v1beta1"),
        finding(RuleId.PDB_BLOCKS_DRAIN, "PodDisruptionBudget shop/api", amount=1, detail="it allows no disruptions"),
        finding(RuleId.PDB_SELECTOR, "PodDisruptionBudget shop/api", amount=1, detail="it selects no pod: app=apo"),
        finding(
            RuleId.PDB_BLOCKS_AT_HPA_MINIMUM,
            "PodDisruptionBudget shop/api",
            amount=1,
            detail="it allows no disruptions",
        ),
        finding(RuleId.PDB_WEAKENED, "PodDisruptionBudget shop/api", amount=1, detail="allowed 0 disruptions, now 2"),
        finding(RuleId.PRIORITY_LOWERED, "Deployment shop/api", amount=1, detail="had priority 100, now 0", **at_api),
        finding(RuleId.PRIORITY_CLASS_IN_USE, "PriorityClass high", amount=1, detail="is deleted"),
        finding(RuleId.DEFAULT_PRIORITY_CHANGED, "PriorityClass all", amount=1, detail="changes what pods get"),
        finding(RuleId.QUOTA_LOOSENED, "ResourceQuota shop/q", amount=1, detail="limited pods to 5, now 10"),
        finding(RuleId.NAMESPACE_RELABELED, "Namespace shop", amount=1, detail="had team=a, now no team"),
        finding(RuleId.OWNER_REMOVED, "Pod shop/api-1", amount=1, detail="had the controller ReplicaSet shop/api"),
        finding(RuleId.DRAIN_INCOMPLETE, "PodDisruptionBudget shop/api", amount=1, detail="it allows no disruptions"),
        finding(RuleId.AUTOSCALED_REPLICAS, "Deployment shop/api", amount=1, detail="the apply deletes 2 pods"),
        finding(
            RuleId.DUPLICATE_OBJECTS, "Deployment shop/api", amount=1, detail="a.yaml:1 is applied before b.yaml:1"
        ),
        finding(RuleId.AUTOSCALED_MAXIMUM, "Deployment shop/api", amount=1, detail="3 more pods pending"),
        finding(RuleId.ROLLOUT_STUCK, "StatefulSet shop/db", amount=1, detail="the partition 2 keeps pods"),
        finding(
            RuleId.VOLUME_ATTACHED_ELSEWHERE,
            "Deployment shop/api",
            amount=1,
            pods=["shop/api-new-1"],
            detail="shop/api-new-1 on n2: volume shop/data is attached to n1",
        ),
        finding(RuleId.BYPASSES_SCHEDULER, "Pod shop/one", amount=1, detail="node n9 does not exist"),
        finding(
            RuleId.ADOPTED_PODS, "ReplicaSet shop/all", amount=1, detail="shop/one; the controller then deletes it"
        ),
        finding(RuleId.CREATED_NODES, "Node n9", amount=1, detail="the API server taints it"),
        finding(RuleId.MAX_SNAPSHOT_AGE, amount=7200, limit=3600),
        finding(RuleId.PDBS_UNREADABLE, amount=1, detail="poddisruptionbudgets is forbidden"),
        finding(RuleId.ABSENT_KINDS, "PodDisruptionBudget", amount=1, detail="the snapshot has none"),
        finding(RuleId.SKIPPED_OBJECTS, "Pod shop/bad", amount=1, detail="spec: expected an object"),
        finding(RuleId.UNMODELED_INPUT, "Deployment shop/api", amount=1, detail="spec.resourceClaims: not allocated"),
        finding(RuleId.CUSTOM_RESOURCES, "Widget.example.com", amount=1, detail="the dump has none"),
        finding(RuleId.OUTCOME_UNCERTAIN, amount=1, detail="the simulation was aborted before it ended"),
    ]
    # A rule without anything special needs no finding here.
    others = [rule_id for rule_id in RuleId if rule_id not in {each.rule for each in found}]
    found += [finding(rule_id, "Deployment shop/api", amount=1, detail="a detail") for rule_id in others]
    return sorted(found, key=lambda each: list(RuleId).index(each.rule))


def of_many(number: int, **fields: object) -> list[SimulationStep]:
    """One step for each of many equal pods, spread over five nodes."""
    return [
        SimulationStep(pod=f"shop/api-old-{place:03}", node=f"node-{place % 5}", **fields)  # type: ignore[arg-type]
        for place in range(number)
    ]


def hostile(texts: Sequence[str] = HOSTILE) -> Check:
    """The failed check with a hostile name in every text from the input."""
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
    simulation = msgspec.structs.replace(
        check.simulation,
        displaced=[
            msgspec.structs.replace(
                check.simulation.displaced[0],
                pod=text,
                node=text,
                cause=text,
                replacement=text,
                lands_on=text,
                violated=[text],
            )
            for text in texts
        ],
        pending=[UnscheduledPod(pod=text, priority=0, message=text) for text in texts],
        budgets=[BudgetMinimum(budget=text, before=0, min=0, after=0) for text in texts],
        workloads=[SimulatedWorkload(workload=text) for text in texts],
        broken_dependencies=[
            BrokenDependency(kind=BrokenDependencyKind.SERVICE, subject=text, node=text, missing=[text])
            for text in texts
        ],
        loop=list(texts),
        steps=[
            SimulationStep(
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
        simulation=simulation,
        outcomes=[OutcomeShare(count=1, seed=0, end=text, victims={text: 1}, pending={text: 1}) for text in texts],
        nodes=[NodeUtilization(node=text, allocatable={}, before={}, after={}) for text in texts],
        free=dict.fromkeys(texts, 1),
        assumptions=[Assumption(text, text, text) for text in texts],
    )


def _of(texts: Sequence[str], place: int) -> str:
    return texts[place % len(texts)]


def whole_check(**named: str) -> Check:
    """A failing check with every part; ``name``, ``node`` and ``message`` replace the displayed values."""
    name, node = named.get("name", "shop/web-5d8f-1"), named.get("node", "node-b")
    message = named.get("message", "0/3 nodes are available: 3 Insufficient cpu.")
    web, api, batch = "Deployment shop/web", "Deployment shop/api", "Deployment batch/crunch"
    steps = [
        SimulationStep(at=0.0, kind=StepKind.SCALED, pod="shop/api-7c9", owner="", replicas=3),
        *(_arrives(0.0, f"shop/api-7c9-{number}", "ReplicaSet api-7c9") for number in (1, 2, 3)),
        _lands(0.0, "shop/api-7c9-1", "ReplicaSet api-7c9", "node-c", tied=["node-c", "node-a"]),
        SimulationStep(at=0.0, kind=StepKind.NOMINATED, pod="shop/api-7c9-2", node="node-a",
            owner="ReplicaSet api-7c9"),
        _evicted(0.0, name, "ReplicaSet web-5d8f", "node-a", "shop/api-7c9-2", violated=["shop/web"]),
        _evicted(0.0, "shop/web-5d8f-2", "ReplicaSet web-5d8f", "node-a", "shop/api-7c9-2"),
        _arrives(0.0, "shop/web-5d8f-new-1", "ReplicaSet web-5d8f", cause=name),
        _arrives(0.0, "shop/web-5d8f-new-2", "ReplicaSet web-5d8f", cause="shop/web-5d8f-2"),
        _evicted(1.0, "batch/crunch-66b-9", "ReplicaSet crunch-66b", node, "shop/web-5d8f-new-1"),
        _arrives(1.0, "batch/crunch-66b-new-3", "ReplicaSet crunch-66b", cause="batch/crunch-66b-9"),
        SimulationStep(at=1.0, kind=StepKind.PENDING, pod="batch/crunch-66b-new-3", owner="ReplicaSet crunch-66b",
                 message=message),
        SimulationStep(at=30.0, kind=StepKind.TERMINATED, pod=name, owner="ReplicaSet web-5d8f", node="node-a"),
        SimulationStep(at=30.0, kind=StepKind.TERMINATED, pod="shop/web-5d8f-2", owner="ReplicaSet web-5d8f",
            node="node-a"),
        _lands(30.0, "shop/api-7c9-2", "ReplicaSet api-7c9", "node-a"),
        _lands(30.0, "shop/api-7c9-3", "ReplicaSet api-7c9", "node-a"),
        SimulationStep(at=31.0, kind=StepKind.TERMINATED, pod="batch/crunch-66b-9",
            owner="ReplicaSet crunch-66b", node=node),
        _lands(31.0, "shop/web-5d8f-new-1", "ReplicaSet web-5d8f", node),
        SimulationStep(at=42.5, kind=StepKind.TERMINATING, pod="shop/api-5f4-1", owner="ReplicaSet api-5f4",
            node="node-c",
                 reason="update"),
        SimulationStep(at=72.5, kind=StepKind.TERMINATED, pod="shop/api-5f4-1", owner="ReplicaSet api-5f4",
            node="node-c"),
        _lands(95.0, "shop/web-5d8f-new-2", "ReplicaSet web-5d8f", "node-c"),
    ]  # fmt: skip
    displaced = [
        Displaced(pod=name, priority=100, node="node-a", cause="shop/api-7c9-2", owner="ReplicaSet web-5d8f",
                  workload=web, violated=["shop/web"], replacement="shop/web-5d8f-new-1", lands_on=node),
        Displaced(pod="batch/crunch-66b-9", priority=0, node=node, cause="shop/web-5d8f-new-1", depth=2,
                  owner="ReplicaSet crunch-66b", workload=batch, replacement="batch/crunch-66b-new-3"),
        Displaced(pod="shop/web-5d8f-2", priority=100, node="node-a", cause="shop/api-7c9-2",
                  owner="ReplicaSet web-5d8f", workload=web, replacement="shop/web-5d8f-new-2", lands_on="node-c"),
    ]  # fmt: skip
    simulation = Simulation(
        end=SimulationEnd.SETTLED,
        seconds=95.0,
        depth=2,
        starts_at={"shop/api-7c9-1": 0.0, "shop/api-7c9-2": 30.0, "shop/api-7c9-3": 30.0},
        displaced=displaced,
        pending=[
            UnscheduledPod(pod="batch/crunch-66b-new-3", priority=0, owner="ReplicaSet crunch-66b", workload=batch,
                    message=message, was_running=True),
            UnscheduledPod(pod="batch/other-1", priority=0, pending_before=True, message=message),
        ],
        budgets=[
            BudgetMinimum(budget="shop/web", before=0, min=-1, after=0, violations=1),
            BudgetMinimum(budget="shop/api", before=1, min=0, after=1),
        ],
        workloads=[
            SimulatedWorkload(workload=api, is_changed=True, desired_before=2, desired_after=4, ready_before=2,
                ready_min=2,
                         ready_after=4, nodes_before={"node-c": 2}, nodes_after={"node-c": 2, "node-a": 2}),
            SimulatedWorkload(workload=web, desired_before=2, desired_after=2, ready_before=2, ready_min=0,
                ready_after=2,
                         victims=2, nodes_before={"node-a": 2}, nodes_after={node: 1, "node-c": 1}),
            SimulatedWorkload(workload=batch, is_done=False, desired_before=9, desired_after=9, ready_before=9,
                ready_min=8,
                         ready_min_at=1.0, ready_after=8, pending_after=1, victims=1, nodes_before={node: 9},
                         nodes_after={node: 8}),
        ],
        broken_dependencies=[
            BrokenDependency(kind=BrokenDependencyKind.SERVICE, subject="shop/web", missing=[name,
                "shop/web-5d8f-2"], until=31.0),
            BrokenDependency(kind=BrokenDependencyKind.AFFINITY, subject="shop/cache-0", node="node-a", missing=[name]),
        ],
        draws=1,
        steps=steps,
    )  # fmt: skip
    return Check(
        passed=False,
        algorithm="kube-1.36",
        cluster=ClusterSummary(nodes=3, pods=42, version="v1.36.2", taken_at=NOW - timedelta(hours=1)),
        at=NOW,
        changes=[
            Change(object=api, kind=ChangeKind.ROLLED, strategy="RollingUpdate", replicas=4, replicas_before=2,
                   fields=["spec.replicas", "spec.template.spec.containers[0].resources.requests.cpu"],
                   source="deploy/api.yaml", line=12, origin="charts/api/templates/deployment.yaml"),
            Change(object="ConfigMap shop/api", kind=ChangeKind.UPDATED, source="deploy/api.yaml", line=60),
        ],
        rules=[
            RuleResult(rule=RuleId.MAX_PDB_VIOLATIONS, limit=0, amount=1, failures=1),
            RuleResult(rule=RuleId.MAX_VICTIMS, limit=2, amount=3, failures=1),
            RuleResult(rule=RuleId.MAX_CASCADE_DEPTH, limit=1, amount=2, waived=1),
            RuleResult(rule=RuleId.MAX_PENDING, limit=0, amount=1, not_new=1),
            RuleResult(rule=RuleId.REQUIRE_SCHEDULABLE),
            RuleResult(rule=RuleId.MAX_SNAPSHOT_AGE, is_on=False),
        ],
        findings=[
            GateFinding(rule=RuleId.MAX_CASCADE_DEPTH, subject="Pod batch/crunch-66b-9", amount=2, limit=1,
                        status=FindingStatus.WAIVED,
                        chain=["shop/api-7c9-2", f"{name} → shop/web-5d8f-new-1", "batch/crunch-66b-9"],
                        reason="crunch may wait", by=".kpreempt.yaml:7", expires="2027-01-01", fingerprint="c3"),
            GateFinding(rule=RuleId.MAX_PDB_VIOLATIONS, subject="PodDisruptionBudget shop/web", amount=1, pods=[name],
                        chain=["shop/api-7c9-2", name], change=api, source="deploy/api.yaml", line=12,
                        origin="charts/api/templates/deployment.yaml", since=30.0, detail=message, fingerprint="a1"),
            GateFinding(rule=RuleId.MAX_VICTIMS, subject="Deployment shop/api", amount=3, limit=2,
                        pods=[each.pod for each in displaced], change=api, source="deploy/api.yaml", line=12),
            GateFinding(rule=RuleId.MAX_PENDING, subject=batch, amount=1, status=FindingStatus.NOT_NEW,
                        pods=["batch/crunch-66b-new-3"], detail=message),
        ],
        simulation=simulation,
        seed=4,
        runs=20,
        evictions=Range(min=1, max=3),
        outcomes=[
            OutcomeShare(count=13, seed=0, end="Settled", victims={web: 1}, depth=1),
            OutcomeShare(count=7, seed=4, end="Settled", victims={web: 2, batch: 1}, violations={"shop/web": 1},
                         pending={batch: 1}, depth=2, fails=True),
        ],
        nodes=[
            _room("node-a", {"cpu": 3500, "memory": 6 * _GI, "pods": 5}, {"cpu": 4000, "memory": 7 * _GI, "pods": 5},
                  {web: 2, "StatefulSet shop/cache": 1, "DaemonSet kube-system/agent": 2},
                  {api: 2, "StatefulSet shop/cache": 1, "DaemonSet kube-system/agent": 2}),
            _room(node, {"cpu": 3900, "memory": 4 * _GI, "pods": 30}, {"cpu": 3800, "memory": 4 * _GI + 1, "pods": 30},
                  {"Deployment batch/crunch": 29, "DaemonSet kube-system/agent": 2},
                  {"Deployment batch/crunch": 28, "DaemonSet kube-system/agent": 2, web: 1}),
            _room("node-c", {"cpu": 1000, "memory": 1 * _GI, "pods": 2}, {"cpu": 5000, "memory": 3 * _GI, "pods": 3},
                  {api: 2}, {api: 2, web: 1}),
        ],
        free={"cpu": 2200, "memory": 10 * _GI, "pods": 298},
        assumptions=[Assumption(f"Pod {name}", "spec.resourceClaims", "devices are not allocated")],
    )  # fmt: skip


def quiet_check() -> Check:
    """A check without any effects."""
    simulation = Simulation(
        end=SimulationEnd.SETTLED, seconds=0.0, depth=0, starts_at={}, displaced=[], pending=[], budgets=[], steps=[]
    )
    rules = [RuleResult(rule=RuleId.MAX_VICTIMS, limit=0)]
    return Check(passed=True, algorithm="kube-1.36", changes=[], rules=rules, findings=[], simulation=simulation)


def hostile_check() -> Check:
    """The complete check with names and messages that try to break out of a page."""
    return whole_check(name=f"shop/{MARKUP}", node=TURNED, message=f"{MARKUP}\n{TURNED}")


def big_check(pods: int = 5000, name_length: int = 200) -> Check:
    """Long names; each pod belongs to a separate workload and evicts another one, at another time on another node."""
    long = "n" * name_length
    steps, displaced, workloads, findings, nodes, budgets = [], [], [], [], [], []
    for number in range(pods):
        new, old, node, at = f"shop/{long}-new-{number}", f"shop/{long}-{number}", f"{long}-{number}", float(number)
        owner, budget = f"StatefulSet {long}-{number}", f"shop/{long}-{number}"
        steps += [
            _arrives(at, new, owner),
            _evicted(at, old, owner, node, new, violated=[budget]),
            _lands(at, new, owner, node),
        ]
        workload = f"StatefulSet shop/{long}-{number}"
        displaced.append(
            Displaced(pod=old, priority=1, node=node, cause=new, depth=number + 1, workload=workload, violated=[budget],
                      replacement=f"{new}-r", lands_on=node)
        )  # fmt: skip
        workloads.append(SimulatedWorkload(workload=workload, ready_before=1, ready_min=0, ready_after=1))
        chain = [f"shop/{long}-{each}" for each in range(min(number, 100))]
        findings.append(GateFinding(rule=RuleId.MAX_PDB_VIOLATIONS, subject=budget, amount=1, pods=chain, chain=chain))
        nodes.append(_room(node, {"cpu": 1}, {"cpu": 2}, {workload: 1}, {workload: 1}))
        budgets.append(BudgetMinimum(budget=budget, before=0, min=-1, after=0, violations=1))
    check = whole_check()
    simulation = Simulation(
        end=SimulationEnd.ABORTED, seconds=float(pods), depth=pods, starts_at={}, displaced=displaced,
        budgets=budgets,
        pending=[UnscheduledPod(pod=each.pod, priority=1, message="m" * 900) for each in displaced],
            workloads=workloads,
        broken_dependencies=[BrokenDependency(kind=BrokenDependencyKind.SERVICE, subject=each.pod,
            missing=[each.node] * 9) for each in displaced],
        steps=steps,
    )  # fmt: skip
    return Check(
        passed=False,
        algorithm="kube-1.36",
        changes=[Change(object=each.workload, kind=ChangeKind.CREATED, fields=[long] * 20) for each in workloads],
        rules=check.rules,
        findings=findings,
        simulation=simulation,
        runs=pods,
        outcomes=[
            OutcomeShare(count=1, seed=number, end="Loop", victims={each.workload: 1 for each in workloads[:50]})
            for number in range(pods)
        ],
        nodes=nodes,
        assumptions=[Assumption(each.pod, "spec.x", "not evaluated") for each in displaced],
    )


def _arrives(at: float, pod: str, owner: str, cause: str = "") -> SimulationStep:
    return SimulationStep(at=at, kind=StepKind.CREATED, pod=pod, owner=owner, cause=cause)


def _lands(at: float, pod: str, owner: str, node: str, tied: Iterable[str] = ()) -> SimulationStep:
    return SimulationStep(at=at, kind=StepKind.BOUND, pod=pod, owner=owner, node=node, tied=list(tied))


def _evicted(at: float, pod: str, owner: str, node: str, cause: str, violated: Iterable[str] = ()) -> SimulationStep:
    return SimulationStep(
        at=at, kind=StepKind.TERMINATING, pod=pod, owner=owner, node=node, cause=cause, violated=list(violated)
    )  # fmt: skip


def _room(
    node: str, before: dict[str, int], after: dict[str, int], pods_before: dict[str, int], pods_after: dict[str, int]
) -> NodeUtilization:
    allocatable = {"cpu": 4000, "memory": 8 * _GI, "pods": 110}
    return NodeUtilization(
        node=node,
        allocatable=allocatable,
        before=before,
        after=after,
        pods_before=pods_before,
        pods_after=pods_after,
    )
