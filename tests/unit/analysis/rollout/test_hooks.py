# ruff: noqa: E501 - tables read better in rows
"""Hooks of Helm and Argo CD: which tools read them, which are created by a rollout, and which objects they delete."""

from __future__ import annotations

import pytest

from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.verdict import AssumptionKind
from kpreempt.verdict.check import ChangeKind, RuleId
from tests.rollouts import checked, nodes, running
from tests.rollouts import workload as manifest
from tests.unit.analysis.rollout.changes import Document, plan_of, served, template, workload

HELM, ARGO, WAVE = "helm.sh/hook", "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave"
KUBECTL, BY_HELM, BY_ARGO = Applier.KUBECTL, Applier.HELM, Applier.ARGOCD


def job(image: str = "one", **annotations: str) -> Document:
    document = workload("Job", template=template(image=image))
    document["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    document["metadata"]["annotations"] = annotations
    return document


def marked(document: Document, **annotations: str) -> Document:
    return {**document, "metadata": {**document["metadata"], "annotations": annotations}}


@pytest.mark.parametrize(
    ("applied_by", "annotations", "is_made"),
    [
        pytest.param(BY_HELM, {HELM: "test"}, False, id="a test"),
        pytest.param(BY_HELM, {HELM: "test-success, pre-delete"}, False, id="a test and a deletion"),
        pytest.param(BY_HELM, {HELM: "Test"}, False, id="Helm knows its moments in any case"),
        pytest.param(BY_HELM, {HELM: "some-day"}, False, id="Helm skips a moment that it does not know"),
        pytest.param(BY_HELM, {HELM: "pre-install,some-day"}, False, id="and the whole hook with it"),
        pytest.param(BY_HELM, {HELM: ""}, False, id="a hook of no moment"),
        pytest.param(BY_HELM, {HELM: "pre-install"}, True, id="an installation"),
        pytest.param(BY_HELM, {HELM: "test,post-upgrade"}, True, id="a test and an upgrade"),
        pytest.param(BY_HELM, {ARGO: "Skip"}, True, id="what Argo CD skips, Helm applies"),
        pytest.param(BY_HELM, {}, True, id="no hook"),
        pytest.param(BY_ARGO, {ARGO: "PostDelete"}, False, id="a deletion by Argo CD"),
        pytest.param(BY_ARGO, {ARGO: "Skip"}, False, id="what Argo CD skips"),
        pytest.param(BY_ARGO, {ARGO: "Some"}, False, id="a moment that Argo CD does not know"),
        pytest.param(BY_ARGO, {ARGO: "Skip, PreSync"}, True, id="what it skips only at other moments"),
        pytest.param(BY_ARGO, {ARGO: "PreSync", HELM: "test"}, True, id="a sync by Argo CD, which a test of Helm does not alter"),
        pytest.param(BY_ARGO, {ARGO: "Some", HELM: "pre-install"}, True, id="Argo CD reads the hooks of Helm if it knows none of its own"),
        pytest.param(BY_ARGO, {HELM: "test"}, False, id="Argo CD runs no test of Helm either"),
        pytest.param(BY_ARGO, {}, True, id="no hook of Argo CD"),
    ],
)  # fmt: skip
def test_hooks_that_no_rollout_runs_are_left_out_and_listed(
    applied_by: Applier, annotations: dict[str, str], *, is_made: bool
) -> None:
    plan = plan_of(job(**annotations), applied_by=applied_by)
    assert [each.name for each in plan.workloads] == (["api"] if is_made else [])
    listed = [(each.subject, each.kind) for each in plan.assumptions]
    assert listed == ([] if is_made else [("Job shop/api", AssumptionKind.INFORMATIONAL)])


@pytest.mark.parametrize("annotations", [{HELM: "test"}, {HELM: "pre-delete"}, {ARGO: "Skip"}, {ARGO: "SyncFail"}])
@pytest.mark.parametrize("applied_by", [None, KUBECTL])
def test_kubectl_applies_every_hook_and_only_the_default_names_the_option(
    annotations: dict[str, str], applied_by: Applier | None
) -> None:
    """So that no annotation of a change hides an object, unless the pipeline says that another tool applies it."""
    plan = plan_of([job(**annotations), marked(workload(), **{WAVE: "1"})], applied_by=applied_by)
    assert [(each.object, each.kind) for each in plan.changes] == [
        ("Job shop/api", ChangeKind.CREATED),
        ("Deployment shop/api", ChangeKind.CREATED),
    ]
    assert plan.order.awaited == (True,)
    tool = "helm" if HELM in annotations else "argocd"
    hints = [(each.kind, each.message.endswith(f"--applied-by {tool}")) for each in plan.assumptions]
    assert hints == ([(AssumptionKind.INFORMATIONAL, True)] if applied_by is None else [])


@pytest.mark.parametrize(
    ("annotations", "is_rejected"),
    [
        pytest.param({HELM: "pre-upgrade"}, False, id="a hook of Helm"),
        pytest.param({HELM: "pre-upgrade", f"{HELM}-delete-policy": "hook-succeeded,before-hook-creation"}, False, id="one that says so"),
        pytest.param({ARGO: "Sync"}, False, id="a hook of Argo CD"),
        pytest.param({HELM: "pre-upgrade", f"{HELM}-delete-policy": "hook-failed"}, True, id="one that stays if it succeeds"),
        pytest.param({ARGO: "Sync", f"{ARGO}-delete-policy": "HookSucceeded"}, True, id="one of Argo CD that stays"),
        pytest.param({}, True, id="no hook"),
    ],
)  # fmt: skip
def test_a_hook_that_is_deleted_first_is_no_refused_apply(annotations: dict[str, str], *, is_rejected: bool) -> None:
    applied_by = BY_ARGO if ARGO in annotations else BY_HELM
    plan = plan_of(job("two", **annotations), served(job("one", **annotations)), applied_by=applied_by)
    assert [each.kind.value for each in plan.changes] == ["Rejected" if is_rejected else "Rolled"]
    assert [each.startswith("spec.template: Invalid value: ") for each in plan.rejections.values()] == [
        True
    ] * is_rejected


def test_a_hook_runs_again_even_as_it_was_but_not_by_kubectl() -> None:
    hook = job(**{HELM: "pre-upgrade"})
    kinds = [plan_of(hook, served(hook), applied_by=each).changes[0].kind for each in (BY_HELM, KUBECTL)]
    assert kinds == [ChangeKind.ROLLED, ChangeKind.UNCHANGED]
    assert [each.kind.value for each in plan_of(job(), served(job()), applied_by=BY_HELM).changes] == ["Unchanged"]


@pytest.mark.parametrize(
    ("applied_by", "annotations"),
    [
        pytest.param(BY_HELM, {HELM: "test"}, id="a test of Helm"),
        pytest.param(BY_HELM, {HELM: "pre-upgrade"}, id="a hook that Helm runs, and deletes afterwards"),
        pytest.param(BY_HELM, {HELM: "nonsense"}, id="a moment that Helm does not know"),
        pytest.param(BY_ARGO, {ARGO: "Skip"}, id="what Argo CD skips"),
        pytest.param(BY_ARGO, {ARGO: "Sync"}, id="a hook that Argo CD runs"),
        pytest.param(BY_ARGO, {HELM: "test"}, id="a test of Helm under Argo CD"),
    ],
)
def test_a_workload_that_becomes_a_hook_is_deleted_which_only_a_deletion_by_name_allows(
    applied_by: Applier, annotations: dict[str, str]
) -> None:
    web = manifest("Deployment", "web", replicas=2)
    there = [*nodes(2), *running(web, ["n1", "n2"])]
    found = checked(there, [marked(web, **annotations)], applied_by=applied_by)
    assert [(each.object, each.kind) for each in found.changes] == [("Deployment shop/web", ChangeKind.DELETED)]
    broken = [(each.rule, each.subject) for each in found.findings]
    assert (found.passed, broken) == (False, [(RuleId.MAX_DELETIONS, "Deployment shop/web")])
    (sign,) = annotations
    assert sign in found.findings[0].detail
    assert (found.findings[0].source, found.findings[0].line) == ("change.yaml", 1)
    allowed = checked(there, [marked(web, **annotations)], applied_by=applied_by, deleted=["Deployment/web"])
    assert (allowed.passed, [each.kind for each in allowed.changes]) == (True, [ChangeKind.DELETED])


@pytest.mark.parametrize("kind", ["PodDisruptionBudget", "Service", "Pod", "CronJob", "StatefulSet"])
def test_so_is_any_other_object_that_the_cluster_has(kind: str) -> None:
    documents: dict[str, Document] = {
        "PodDisruptionBudget": {"apiVersion": "policy/v1", "spec": {"selector": {}, "minAvailable": 1}},
        "Service": {"apiVersion": "v1", "spec": {"selector": {"app": "api"}}},
        "Pod": {"apiVersion": "v1", "spec": {"containers": [{"name": "main", "image": "one"}]}},
    }
    document = {"kind": kind, "metadata": {"name": "api", "namespace": "shop"}, **documents.get(kind, {})}
    if kind not in documents:
        document = workload(kind)
    there = {**document, "status": {"phase": "Running"}} if kind == "Pod" else document
    hook = marked(document, **{HELM: "test"})
    plan = plan_of(hook, there, applied_by=BY_HELM)
    assert [(each.object, each.kind) for each in plan.changes] == [(f"{kind} shop/api", ChangeKind.DELETED)]
    assert [HELM in each.deleted_by for each in plan.changes] == [True]
    # What was a hook before is one of the last run, and stays.
    plan = plan_of(hook, {**there, "metadata": hook["metadata"]}, applied_by=BY_HELM)
    assert plan.changes == []


def test_a_job_that_has_ended_or_is_new_becomes_a_hook_without_a_word() -> None:
    hook = job(**{HELM: "test"})
    assert not any(each.deleted_by for each in plan_of(hook, served(job()), applied_by=BY_HELM).changes)
    assert not any(each.deleted_by for each in plan_of(hook, applied_by=BY_HELM).changes)


def test_an_object_that_is_in_the_change_next_to_its_hook_is_not_deleted() -> None:
    plan = plan_of([marked(workload(), **{HELM: "test"}), workload()], served(workload()), applied_by=BY_HELM)
    assert [(each.kind, each.deleted_by) for each in plan.changes] == [(ChangeKind.UNCHANGED, "")]
