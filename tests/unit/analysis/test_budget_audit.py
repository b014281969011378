# ruff: noqa: E501 - tables read better in rows
"""What is found about budgets, what would mend it, and who would break them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kpreempt.admission import fill_budget_statuses
from kpreempt.analysis.algorithms import AnalysisContext, scheduler_for
from kpreempt.analysis.budgets.audit import audit_budgets
from kpreempt.analysis.pending.pods import explain_pending
from kpreempt.analysis.pod_selection import PodSelection, parse_selector
from kpreempt.library.draws import DRAWS
from kpreempt.model.cluster import ClusterSnapshot, Unread
from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement
from kpreempt.model.meta import ObjectMeta, OwnerReference
from kpreempt.model.pod import Pod, PodCondition
from kpreempt.model.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from kpreempt.model.workloads import Deployment, ReplicaSet, WorkloadSpec
from kpreempt.report import terminal
from kpreempt.report.answers import ANSWER_FORMATS, render_answer
from kpreempt.report.budgets.text import finding_text, fix_in_words
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.scheduler_table import ALGORITHMS
from kpreempt.verdict import Assumption, AssumptionKind, Outcome
from kpreempt.verdict.budgets import BudgetAudit, Finding, FindingId, NearMiss, Severity
from tests.conformance.cases import cluster_of, pod_of
from tests.factories import NOW, make_node, make_pod
from tests.strategies_whole import whole_scenarios

DAY = timedelta(days=1)
WEB = {"app": "web"}
LAWS = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def deployment(name: str, replicas: int, labels: dict[str, str] | None = None) -> tuple[Deployment, ReplicaSet]:
    selector = LabelSelector(match_labels=labels or {"app": name})
    owner = OwnerReference("Deployment", name, f"uid-{name}", "apps/v1", controller=True)
    spec = WorkloadSpec(selector, replicas)
    return (
        Deployment(metadata=ObjectMeta(name=name, namespace="shop", uid=f"uid-{name}"), spec=spec),
        ReplicaSet(
            metadata=ObjectMeta(name=f"{name}-1", namespace="shop", uid=f"uid-{name}-1", owner_references=[owner]),
            spec=spec,
        ),
    )


def pods(
    owner: str, number: int, *, ready: int | None = None, labels: dict[str, str] | None = None, **pod: Any
) -> list[Pod]:
    """Pods of the owner (``ReplicaSet web-1``), of which the first ``ready`` are ready."""
    kind, _, name = owner.partition(" ")
    group = "batch/v1" if kind == "Job" else "apps/v1"
    references = [OwnerReference(kind, name, f"uid-{name}", group, controller=True)] if owner else []
    found = []
    for index in range(number):
        is_ready = "True" if ready is None or index < ready else "False"
        base = make_pod(f"{name or 'lone'}-{index}", node="node-a", labels=labels or WEB, started=NOW - DAY, **pod)
        found.append(
            msgspec.structs.replace(
                base,
                metadata=msgspec.structs.replace(base.metadata, owner_references=references),
                status=msgspec.structs.replace(base.status, conditions=[PodCondition("Ready", is_ready)]),
            )
        )
    return found


def budget(
    name: str = "web",
    labels: dict[str, str] | None = None,
    *,
    selector: LabelSelector | str | None = "",
    status: PodDisruptionBudgetStatus | None = None,
    generation: int = 0,
    **spec: Any,
) -> PodDisruptionBudget:
    chosen = LabelSelector(match_labels=labels or WEB) if isinstance(selector, str) else selector
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="shop", generation=generation),
        spec=PodDisruptionBudgetSpec(selector=chosen, **spec),
        status=status,
    )


def audit(
    *parts: Any,
    algorithm: str = "",
    selection: PodSelection | None = None,
    assumptions: list[Assumption] | None = None,
    unread: dict[str, Unread] | None = None,
    documents: Sequence[dict[str, Any]] = (),
) -> BudgetAudit:
    """The audit of a cluster of these objects on one node, with statuses as the disruption controller computes them."""
    flat = [each for part in parts for each in (part if isinstance(part, list | tuple) else [part])]
    cluster = ClusterSnapshot(
        nodes=[make_node("node-a", cpu="4")],
        pods=[each for each in flat if isinstance(each, Pod)],
        pod_disruption_budgets=[each for each in flat if isinstance(each, PodDisruptionBudget)],
        deployments=[each for each in flat if isinstance(each, Deployment)],
        replica_sets=[each for each in flat if isinstance(each, ReplicaSet)],
        unread=unread or {},
    )
    filled, _ = fill_budget_statuses(cluster)
    return audit_budgets(
        AnalysisContext(filled, scheduler_for(algorithm), NOW, at=NOW, assumptions=assumptions or []),
        selection=selection or PodSelection(),
        documents=documents,
    )


def found(answer: BudgetAudit) -> list[tuple[str, str, str]]:
    return [(each.severity, each.subject, each.id) for each in answer.findings]


def only(answer: BudgetAudit, kind: FindingId) -> Finding:
    matching = [each for each in answer.findings if each.id is kind]
    assert len(matching) == 1
    return matching[0]


def autoscaler(minimum: int, maximum: int = 9, **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop", **metadata},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": minimum,
            "maxReplicas": maximum,
        },
    }


INSTEAD = "set maxUnavailable: 1 instead of minAvailable"


@pytest.mark.parametrize(
    ("spec", "replicas", "expected", "helps"),
    [
        pytest.param({"max_unavailable": 0}, 3, "never-allows", "set maxUnavailable: 1", id="none may be gone"),
        pytest.param({"max_unavailable": "0%"}, 3, "never-allows", "set maxUnavailable: 1", id="no share may"),
        pytest.param({"min_available": "100%"}, 3, "never-allows", INSTEAD, id="all have to stay"),
        # Twice as many replicas are not worth a percentage.
        pytest.param({"min_available": "90%"}, 5, "never-allows", INSTEAD, id="a share that is rounded up to all"),
        pytest.param({"min_available": 3}, 3, "never-allows", f"{INSTEAD}, or scale Deployment shop/web to 4 replicas", id="as many have to stay as there are"),
        pytest.param({"min_available": 4}, 3, "min-available-above-pods", INSTEAD, id="more have to stay than there are"),
        pytest.param({}, 3, "never-allows", "set maxUnavailable: 1", id="nothing is said"),
        # More replicas keep what the PDB protects.
        pytest.param({"min_available": 1}, 1, "never-allows", f"scale Deployment shop/web to 2 replicas, or {INSTEAD} (its only pod can then be evicted)", id="the only pod"),
    ],
)  # fmt: skip
def test_a_budget_that_can_never_allow_anything_is_an_error(
    spec: dict[str, Any], replicas: int, expected: str, helps: str
) -> None:
    answer = audit(budget(**spec), deployment("web", replicas), pods("ReplicaSet web-1", replicas))
    finding = only(answer, FindingId(expected))
    assert (finding.severity, fix_in_words(finding)) == (Severity.ERROR, helps)


@pytest.mark.parametrize(
    ("spec", "ready", "expected"),
    [
        pytest.param({"max_unavailable": "1%"}, 3, [], id="the least share is rounded up to one pod"),
        pytest.param({"min_available": 2}, 3, [], id="one of three may go"),
        pytest.param({"min_available": "60%"}, 3, [], id="a share that leaves one"),
        pytest.param(
            {"min_available": 0}, 3, [("note", "PodDisruptionBudget web", "protects-nothing")], id="none has to stay"
        ),
        pytest.param(
            {"max_unavailable": "100%"}, 3, [("note", "PodDisruptionBudget web", "protects-nothing")], id="all may go"
        ),
        pytest.param(
            {"max_unavailable": 1}, 2, [("warning", "PodDisruptionBudget web", "allows-none-now")], id="one is down"
        ),
        pytest.param(
            {"min_available": "abc"}, 3, [("error", "PodDisruptionBudget web", "invalid-amount")], id="no amount"
        ),
        pytest.param(
            {"min_available": "9" * 10 + "%"}, 3, [("error", "PodDisruptionBudget web", "invalid-amount")], id="absurd"
        ),
    ],
)
def test_what_a_budget_allows_decides_what_is_said(
    spec: dict[str, Any], ready: int, expected: list[tuple[str, str, str]]
) -> None:
    assert found(audit(budget(**spec), deployment("web", 3), pods("ReplicaSet web-1", 3, ready=ready))) == expected


def test_the_pods_that_are_not_ready_are_named_and_those_to_be_made_counted() -> None:
    answer = audit(budget(min_available=3), deployment("web", 5), pods("ReplicaSet web-1", 4, ready=2))
    assert only(answer, FindingId.ALLOWS_NONE_NOW).pods == ["web-1-2", "web-1-3"]
    item = answer.items[0]
    assert (item.not_ready, item.missing, item.current_healthy, item.desired_healthy) == (
        ["web-1-2", "web-1-3"],
        1,
        2,
        3,
    )


REPAIR = "repair pods web-1-2, web-1-3"
ALWAYS = "set unhealthyPodEvictionPolicy: AlwaysAllow (a drain can then evict the pods that are not ready, no others)"


@pytest.mark.parametrize(
    ("spec", "advice"),
    [
        pytest.param({"min_available": 3}, f"{REPAIR}, or {ALWAYS}", id="too few are ready to evict the others"),
        pytest.param(
            {"min_available": 3, "unhealthy_pod_eviction_policy": "IfHealthyBudget"}, f"{REPAIR}, or {ALWAYS}", id="so"
        ),
        # The API server already accepts evictions of the pods that are not ready.
        pytest.param({"min_available": 3, "unhealthy_pod_eviction_policy": "AlwaysAllow"}, REPAIR, id="always"),
        pytest.param({"min_available": 2}, REPAIR, id="enough are ready to evict the others"),
    ],
)
def test_pods_are_repaired_before_a_budget_is_loosened(spec: dict[str, Any], advice: str) -> None:
    answer = audit(budget(**spec), deployment("web", 4), pods("ReplicaSet web-1", 4, ready=2))
    finding = only(answer, FindingId.ALLOWS_NONE_NOW)
    assert fix_in_words(finding) == advice
    assert [each.solves for each in finding.remedies] == [True, False][: len(finding.remedies)]


def test_pods_are_not_blamed_where_the_status_counts_otherwise() -> None:
    status = PodDisruptionBudgetStatus(expected_pods=3, desired_healthy=3, current_healthy=3)
    answer = audit(budget(status=status, min_available=2), deployment("web", 3), pods("ReplicaSet web-1", 3, ready=1))
    assert only(answer, FindingId.ALLOWS_NONE_NOW).pods == []


def test_a_surge_that_lets_a_pod_go_is_not_never() -> None:
    answer = audit(budget(min_available=3), deployment("web", 3), pods("ReplicaSet web-1", 4))
    assert found(answer) == []


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(None, WEB, "null-selector", id="no selector"),
        pytest.param(LabelSelector(), WEB, "selects-every-pod", id="an empty selector"),
        pytest.param(
            LabelSelector(match_expressions=[LabelSelectorRequirement("app", "In", [])]),
            WEB,
            "invalid-selector",
            id="an expression without values",
        ),
        pytest.param(LabelSelector(match_labels={"app": "api"}), WEB, "selects-nothing", id="labels that no pod has"),
    ],
)
def test_selectors_that_say_something_else_than_meant(
    selector: LabelSelector | None, labels: dict[str, str], expected: str
) -> None:
    answer = audit(budget(selector=selector, max_unavailable=1), pods("ReplicaSet web-1", 1, labels=labels))
    assert FindingId(expected) in [each.id for each in answer.items[0].findings]
    assert answer.items[0].is_counted == (expected == "selects-nothing")


@pytest.mark.parametrize(
    ("selector", "labels", "expected"),
    [
        pytest.param(
            {"app": "webb"}, WEB, [NearMiss("ReplicaSet web-1", 2, "app=webb", "app=web")], id="a misspelt value"
        ),
        pytest.param(
            {"app.kubernetes.io/name": "web"},
            WEB,
            [NearMiss("ReplicaSet web-1", 2, "app.kubernetes.io/name=web", "app=web")],
            id="another key",
        ),
        pytest.param({"app": "payments"}, WEB, [], id="another application"),
        pytest.param(
            {"app": "web", "tier": "front"},
            {"app": "web", "tier": "back"},
            [NearMiss("ReplicaSet web-1", 2, "tier=front", "tier=back")],
            id="one of two labels",
        ),
        pytest.param(
            {"app": "web", "tier": "front"},
            WEB,
            [NearMiss("ReplicaSet web-1", 2, "tier=front", "")],
            id="a label too many",
        ),
        pytest.param({"app": "api", "tier": "front"}, WEB, [], id="two labels"),
    ],
)
def test_a_selector_that_misses_by_one_label_is_shown_what_it_misses(
    selector: dict[str, str], labels: dict[str, str], expected: list[NearMiss]
) -> None:
    answer = audit(budget(labels=selector, max_unavailable=1), pods("ReplicaSet web-1", 2, labels=labels))
    assert only(answer, FindingId.SELECTS_NOTHING).near_misses == expected


def test_hints_are_for_labels_that_a_user_set() -> None:
    long, many = {"app": "w" * 63}, {f"app{each}": "web" for each in range(21)}
    web = pods("ReplicaSet web-1", 1, labels={"app": "w" * 64})
    assert only(audit(budget(labels=long), web), FindingId.SELECTS_NOTHING).near_misses == []
    answer = audit(budget(labels=many), pods("ReplicaSet web-1", 1, labels={**many, "app0": "x"}))
    assert only(answer, FindingId.SELECTS_NOTHING).near_misses == []


def test_hints_go_with_the_first_of_many_budgets_that_select_nothing() -> None:
    budgets = [budget(f"b{each:02}", {"app": "webb", "b": str(each)}) for each in range(51)]
    answer = audit(budgets, pods("ReplicaSet web-1", 1, labels={"app": "webb"}))
    hints = [each.near_misses for each in answer.findings if each.id is FindingId.SELECTS_NOTHING]
    assert [bool(each) for each in hints] == [True] * 50 + [False]


def test_a_table_that_cannot_fit_is_not_laid_out(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = audit([budget(f"b{each}", {"app": f"no-{each}"}) for each in range(300)], pods("ReplicaSet web-1", 1))
    lengths: list[int] = []
    laid_out = terminal._table

    def recording(block: Any, items: Any, *how: Any, **more: Any) -> Any:
        lengths.append(len(items))
        return laid_out(block, items, *how, **more)

    monkeypatch.setattr(terminal, "_table", recording)
    text = render_answer(answer, "text", RenderOptions(height=30, extent=Extent.SCREEN))
    assert "more rows" in text
    assert 0 < max(lengths) <= 30


def test_a_budget_of_a_workload_that_is_scaled_to_zero_is_no_mistake() -> None:
    finding = only(audit(budget(max_unavailable=1), deployment("web", 0)), FindingId.SELECTS_NOTHING)
    assert (finding.severity, finding.objects, finding.remedies) == (Severity.NOTE, ["Deployment web"], [])


def test_two_budgets_on_a_pod_are_an_error_of_both() -> None:
    answer = audit(
        budget("one", max_unavailable=1),
        budget("two", max_unavailable=1),
        deployment("web", 2),
        pods("ReplicaSet web-1", 2),
    )
    assert [(each.subject, each.objects, each.pods) for each in answer.findings] == [
        ("PodDisruptionBudget one", ["PodDisruptionBudget two"], ["web-1-0", "web-1-1"]),
        ("PodDisruptionBudget two", ["PodDisruptionBudget one"], ["web-1-0", "web-1-1"]),
    ]


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param({"max_unavailable": 1}, ["no-scale"], id="a number that may be gone"),
        pytest.param({"min_available": "50%"}, ["no-scale"], id="a share that stays"),
        pytest.param({"min_available": 1}, [], id="a number that stays"),
    ],
)
@pytest.mark.parametrize("owner", ["DaemonSet agent", "Job report"])
def test_pods_of_workloads_without_a_size_cannot_be_computed_with(
    spec: dict[str, Any], expected: list[str], owner: str
) -> None:
    answer = audit(budget(**spec), pods(owner, 2))
    assert [each.id for each in answer.findings] == expected
    assert [each.objects for each in answer.findings] == [[owner]] * len(expected)


def test_pods_without_a_controller_count_nothing_and_alone_allow_nothing() -> None:
    alone = audit(budget(max_unavailable=1), pods("", 2))
    assert found(alone) == [("error", "PodDisruptionBudget web", "unmanaged-pods")]
    assert fix_in_words(only(alone, FindingId.UNMANAGED_PODS)) == "set minAvailable: 1 instead of maxUnavailable"
    other = audit(budget(max_unavailable=2), pods("", 1), deployment("web", 3), pods("ReplicaSet web-1", 3))
    assert only(other, FindingId.UNMANAGED_PODS).severity is Severity.WARNING
    assert found(audit(budget(min_available=1), pods("", 2))) == []


def test_pods_of_two_workloads_are_a_note_and_those_of_two_replica_sets_of_one_deployment_are_not() -> None:
    two = audit(
        budget(max_unavailable=1),
        deployment("web", 1),
        deployment("api", 1, WEB),
        pods("ReplicaSet web-1", 1),
        pods("ReplicaSet api-1", 1),
    )
    assert only(two, FindingId.SEVERAL_WORKLOADS).objects == ["Deployment api", "Deployment web"]
    hashed = [
        each
        for ending in ("5d4", "6f7")
        for each in pods(f"ReplicaSet web-{ending}", 1, labels={**WEB, "pod-template-hash": ending})
    ]
    answer = audit(budget(max_unavailable=1), hashed)
    assert [each.workload for each in answer.items[0].workloads] == ["Deployment web"]
    assert found(answer) == []


def test_a_status_that_is_older_than_the_spec_is_judged_by_the_spec() -> None:
    old = PodDisruptionBudgetStatus(1, current_healthy=2, desired_healthy=1, expected_pods=2, observed_generation=1)
    answer = audit(
        budget(status=old, generation=2, max_unavailable=0), deployment("web", 2), pods("ReplicaSet web-1", 2)
    )
    assert found(answer) == [
        ("error", "PodDisruptionBudget web", "never-allows"),
        ("warning", "PodDisruptionBudget web", "stale-status"),
    ]
    assert (answer.items[0].disruptions_allowed, only(answer, FindingId.STALE_STATUS).number) == (1, 0)


def test_a_status_that_was_filled_in_is_a_note() -> None:
    said = [Assumption("PodDisruptionBudget shop/web", "status", "has no status")]
    answer = audit(budget(max_unavailable=1), deployment("web", 2), pods("ReplicaSet web-1", 2), assumptions=said)
    assert found(answer) == [("note", "PodDisruptionBudget web", "no-status")]


def test_workloads_of_several_replicas_without_a_budget_are_a_note() -> None:
    agents = pods("DaemonSet agent", 3, labels={"app": "agent"})
    databases = pods("StatefulSet db", 1, labels={"app": "db"})
    answer = audit(deployment("web", 2), pods("ReplicaSet web-1", 2), agents, databases)
    finding = only(answer, FindingId.NO_BUDGET)
    assert (finding.subject, finding.number, finding.namespace) == ("Deployment web", 2, "shop")
    assert fix_in_words(finding) == "create a PodDisruptionBudget with maxUnavailable: 1"


def test_where_budgets_may_not_be_listed_nothing_is_said_to_have_none() -> None:
    unread = {"PodDisruptionBudget": Unread(403, "poddisruptionbudgets.policy")}
    answer = audit(deployment("web", 2), pods("ReplicaSet web-1", 2), unread=unread)
    assert found(answer) == []
    assert [(each.subject, each.kind) for each in answer.assumptions] == [
        ("PodDisruptionBudget", AssumptionKind.UNREADABLE)
    ]
    text = render_answer(answer, "text", RenderOptions())
    assert text.startswith("Findings unknown: PodDisruptionBudgets were not read.")


def test_a_workload_of_the_name_of_another_ones_budget_is_reported_as_the_workload() -> None:
    answer = audit(
        budget("api", max_unavailable=1),
        deployment("web", 2),
        deployment("api", 2),
        pods("ReplicaSet web-1", 2),
        pods("ReplicaSet api-1", 2, labels={"app": "api"}),
    )
    assert found(answer) == [("note", "Deployment api", "no-budget")]
    assert "no-budget: Deployment api" in render_answer(answer, "text", RenderOptions(extent=Extent.SCREEN))


def test_the_selection_is_by_namespace_and_by_the_labels_of_pods() -> None:
    objects = (budget("web", max_unavailable=0), budget("api", {"app": "api"}, max_unavailable=0))
    owned = (pods("ReplicaSet web-1", 2), pods("ReplicaSet api-1", 2, labels={"app": "api"}))
    by_label = audit(*objects, *owned, selection=PodSelection("", parse_selector("app=api")))
    assert [item.budget for item in by_label.items] == ["shop/api"]
    assert audit(*objects, *owned, selection=PodSelection("elsewhere")).items == []


@pytest.mark.slow
def test_of_many_findings_a_page_shows_every_kind_and_counts_the_rest() -> None:
    objects: list[Any] = []
    for number in range(60):
        name, labels = f"w{number:02}", {"app": f"w{number:02}"}
        objects += [*deployment(name, 2), *pods(f"ReplicaSet {name}-1", 2, ready=number % 3, labels=labels)]
        objects.append(budget(name, labels, max_unavailable=0 if number % 2 else 1))
    objects.append(budget("every", selector=LabelSelector(), max_unavailable=1))
    answer = audit(*objects)
    text = render_answer(answer, "text", RenderOptions(extent=Extent.SCREEN))
    assert len(text.splitlines()) <= 22
    assert {each.id for each in answer.findings} <= set(text.replace(",", " ").split())
    whole = render_answer(answer, "text", RenderOptions(verbose=True))
    assert all(item.budget in whole for item in answer.items)
    assert "(-v)" in text
    assert "(-v)" not in whole


PENDING = make_pod("import", cpu="3", priority=1000)
ALLOWS_ONE = PodDisruptionBudgetStatus(1, current_healthy=2, desired_healthy=1, expected_pods=2)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_a_pending_pod_that_would_evict_more_than_is_allowed_breaks_the_budget(algorithm: str) -> None:
    workers = pods("ReplicaSet web-1", 2, cpu="2", priority=10)
    answer = audit(budget(status=ALLOWS_ONE, min_available=1), workers, PENDING, algorithm=algorithm)
    (breach,) = answer.items[0].violations
    assert (breach.pod, breach.nodes, sorted(breach.victims)) == (
        "shop/import",
        ["node-a"],
        ["shop/web-1-0", "shop/web-1-1"],
    )
    assert (breach.allowed, breach.remaining, breach.is_certain, breach.position) == (1, -1, True, 1)
    finding = only(answer, FindingId.VIOLATED_BY_PREEMPTION)
    assert finding.severity is Severity.ERROR


def test_a_budget_that_the_scheduler_ignores_is_broken_all_the_same() -> None:
    workers = pods("ReplicaSet web-1", 2, cpu="2", priority=10)
    answer = audit(budget(selector=LabelSelector(), status=ALLOWS_ONE, min_available=1), workers, PENDING)
    assert [each.remaining for each in answer.items[0].violations] == [-1]


def test_within_the_allowance_and_for_pods_that_are_leaving_nothing_breaks() -> None:
    one = pods("ReplicaSet web-1", 1, cpu="2", priority=10)
    assert audit(budget(status=ALLOWS_ONE, min_available=1), one, PENDING).items[0].violations == []
    leaving = [
        msgspec.structs.replace(each, metadata=msgspec.structs.replace(each.metadata, deletion_timestamp=NOW))
        for each in pods("ReplicaSet web-1", 2, cpu="2", priority=10)
    ]
    assert audit(budget(status=ALLOWS_ONE, min_available=1), leaving, PENDING).items[0].violations == []


def test_a_pod_that_was_evicted_a_moment_ago_is_leaving_and_is_not_counted_again() -> None:
    status = msgspec.structs.replace(ALLOWS_ONE, disrupted_pods={"web-1-0": "2026-11-20T23:59:00Z"})
    answer = audit(budget(status=status, min_available=1), pods("ReplicaSet web-1", 2, cpu="2", priority=10), PENDING)
    assert (answer.items[0].terminating, answer.items[0].violations) == (["web-1-0"], [])


def test_a_pod_that_is_being_deleted_breaks_nothing() -> None:
    gone = msgspec.structs.replace(PENDING, metadata=msgspec.structs.replace(PENDING.metadata, deletion_timestamp=NOW))
    answer = audit(budget(status=ALLOWS_ONE, min_available=1), pods("ReplicaSet web-1", 2, cpu="2", priority=10), gone)
    assert (answer.items[0].violations, answer.pending) == ([], 0)


def test_the_priority_is_just_above_that_of_the_least_important_pod() -> None:
    answer = audit(budget(max_unavailable=0), deployment("web", 2), pods("ReplicaSet web-1", 2, cpu="1", priority=10))
    breaking = answer.items[0].violating_priority
    assert breaking is not None
    assert (breaking.pod, breaking.node, breaking.priority) == ("shop/web-1-0", "node-a", 10)
    assert (breaking.threshold.anywhere, breaking.threshold.on_node) == (11, 11)
    assert answer.unsearched == 0


def test_priorities_are_sought_for_some_budgets_only() -> None:
    many = [budget(f"b{number}", {"app": f"b{number}"}, max_unavailable=0) for number in range(12)]
    members = [each for number in range(12) for each in pods(f"StatefulSet b{number}", 1, labels={"app": f"b{number}"})]
    answer = audit(many, members)
    assert (sum(item.violating_priority is not None for item in answer.items), answer.unsearched) == (10, 2)


@LAWS
@given(
    replicas=st.integers(1, 30),
    spec=st.one_of(
        st.builds(lambda n: {"min_available": n}, st.integers(0, 35)),
        st.builds(lambda n: {"min_available": f"{n}%"}, st.integers(0, 100)),
        st.builds(lambda n: {"max_unavailable": n}, st.integers(0, 35)),
        st.builds(lambda n: {"max_unavailable": f"{n}%"}, st.integers(0, 100)),
    ),
)
def test_it_is_never_exactly_where_all_ready_pods_are_not_enough(replicas: int, spec: dict[str, Any]) -> None:
    def allowed(spec: dict[str, Any], replicas: int) -> int:
        return (
            audit(budget(**spec), deployment("web", replicas), pods("ReplicaSet web-1", replicas))
            .items[0]
            .disruptions_allowed
        )

    answer = audit(budget(**spec), deployment("web", replicas), pods("ReplicaSet web-1", replicas, ready=0))
    never = [
        each for each in answer.findings if each.id in (FindingId.NEVER_ALLOWS, FindingId.MIN_AVAILABLE_ABOVE_PODS)
    ]
    assert bool(never) == (allowed(spec, replicas) == 0)
    assert all(finding.remedies for finding in never)


@LAWS
@given(whole_scenarios())
def test_breaches_are_the_violations_that_pending_tells_and_every_format_renders(scenario: dict[str, Any]) -> None:
    base = cluster_of(scenario["objects"])
    pod = pod_of(scenario["pod"])
    pending_pod = [pod] if not pod.spec.node_name else []
    with_pod = msgspec.structs.replace(base, pods=[*(each for each in base.pods if each.key != pod.key), *pending_pod])
    cluster, assumptions = fill_budget_statuses(with_pod)
    answer = audit_budgets(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW, assumptions=assumptions))
    counted = {item.budget for item in answer.items if item.is_counted}
    reported = {
        (breach.pod, item.budget) for item in answer.items for breach in item.violations if item.budget in counted
    }
    for item in explain_pending(AnalysisContext(cluster, scheduler_for(), NOW, at=NOW), draws=DRAWS).items:
        uses = [use for victims in item.victims.values() for victim in victims for use in victim.budgets]
        is_leaving = any(victim.terminating for victims in item.victims.values() for victim in victims)
        overdrawn = {(item.pod, use.budget) for use in uses if use.remaining < 0}
        own = {pair for pair in reported if pair[0] == item.pod}
        assert own <= overdrawn if is_leaving else own == overdrawn
        if item.outcome == Outcome.LANDS:
            assert not own
    for format_name in ANSWER_FORMATS:
        assert render_answer(answer, format_name, RenderOptions(width=80, verbose=True)) is not None


@pytest.mark.parametrize(
    ("spec", "minimum", "words", "fix"),
    [
        pytest.param(
            {"min_available": 1},
            1,
            "minAvailable: 1: no disruption is allowed once the HorizontalPodAutoscaler of Deployment web has scaled"
            " down to its minReplicas, 1 pod in total; a drain then never finishes",
            # With maxUnavailable: 1, the budget would allow less than now.
            "set minReplicas: 2 in HorizontalPodAutoscaler shop/web",
            id="one that stays",
        ),
        pytest.param(
            {"min_available": "60%"},
            0,
            "minAvailable: 60% of 1 pod is 1: no disruption is allowed once the HorizontalPodAutoscaler of Deployment"
            " web has scaled down to its minReplicas, 1 pod in total; a drain then never finishes",
            "set minReplicas: 3 in HorizontalPodAutoscaler shop/web, or set maxUnavailable: 1 instead of"
            " minAvailable (its only pod can then be evicted)",
            id="a share of the last pod",
        ),
        pytest.param({"min_available": 1}, 2, "", "", id="one may go at the minimum"),
        pytest.param({"min_available": 1}, 3, "", "", id="at the minimum now"),
        pytest.param({"max_unavailable": 1}, 1, "", "", id="one may always go"),
    ],
)
def test_a_budget_that_allows_nothing_at_the_minimum_of_an_autoscaler(
    spec: dict[str, Any], minimum: int, words: str, fix: str
) -> None:
    answer = audit(deployment("web", 3), pods("ReplicaSet web-1", 3), budget(**spec), documents=[autoscaler(minimum)])
    kinds = [each.id for each in answer.findings]
    assert kinds == ([FindingId.ALLOWS_NONE_AT_HPA_MINIMUM] if words else [])
    for each in answer.findings:
        assert finding_text(each, answer.items[0]) == words
        assert fix_in_words(each) == fix
