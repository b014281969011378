# ruff: noqa: E501 - tables read better in rows
"""Hooks of Helm and Argo CD: which are made by a rollout, and which of them anew."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.verdict import AssumptionKind
from tests.unit.analysis.rollout.changes import plan_of, served, template, workload

Document = dict[str, Any]
HELM, ARGO = "helm.sh/hook", "argocd.argoproj.io/hook"


def job(image: str = "one", **annotations: str) -> Document:
    document = workload("Job", template=template(image=image))
    document["spec"]["template"]["spec"]["restartPolicy"] = "Never"
    document["metadata"]["annotations"] = annotations
    return document


@pytest.mark.parametrize(
    ("annotations", "is_made"),
    [
        pytest.param({HELM: "test"}, False, id="a test"),
        pytest.param({HELM: "test-success, pre-delete"}, False, id="a test and a deletion"),
        pytest.param({ARGO: "PostDelete"}, False, id="a deletion by Argo CD"),
        pytest.param({ARGO: "Skip"}, False, id="what Argo CD skips"),
        pytest.param({HELM: "pre-install"}, True, id="an installation"),
        pytest.param({HELM: "test,post-upgrade"}, True, id="a test and an upgrade"),
        pytest.param({HELM: "some-day"}, True, id="a moment that nobody knows"),
        pytest.param({HELM: ""}, True, id="no moment"),
        pytest.param({ARGO: "PreSync", HELM: "test"}, True, id="a sync by Argo CD, which a test of Helm does not alter"),
        pytest.param({}, True, id="no hook"),
    ],
)  # fmt: skip
def test_hooks_that_no_rollout_runs_are_left_out_and_told(annotations: dict[str, str], *, is_made: bool) -> None:
    plan = plan_of(job(**annotations))
    assert [each.name for each in plan.workloads] == (["api"] if is_made else [])
    told = [(each.subject, each.kind) for each in plan.assumptions]
    assert told == ([] if is_made else [("Job shop/api", AssumptionKind.TOLD)])


@pytest.mark.parametrize(
    ("annotations", "is_refused"),
    [
        pytest.param({HELM: "pre-upgrade"}, False, id="a hook of Helm"),
        pytest.param({HELM: "pre-upgrade", f"{HELM}-delete-policy": "hook-succeeded,before-hook-creation"}, False, id="one that says so"),
        pytest.param({ARGO: "Sync"}, False, id="a hook of Argo CD"),
        pytest.param({HELM: "pre-upgrade", f"{HELM}-delete-policy": "hook-failed"}, True, id="one that stays if it succeeds"),
        pytest.param({ARGO: "Sync", f"{ARGO}-delete-policy": "HookSucceeded"}, True, id="one of Argo CD that stays"),
        pytest.param({}, True, id="no hook"),
    ],
)  # fmt: skip
def test_a_hook_that_is_deleted_first_is_no_refused_apply(annotations: dict[str, str], *, is_refused: bool) -> None:
    plan = plan_of(job("two", **annotations), served(job("one", **annotations)))
    assert [each.kind.value for each in plan.changes] == ["Rolled"]
    assert bool(plan.assumptions) is is_refused


def test_a_hook_runs_again_even_as_it_was() -> None:
    there = served(job(**{HELM: "pre-upgrade"}))
    plan = plan_of(job(**{HELM: "pre-upgrade"}), there)
    assert [each.kind.value for each in plan.changes] == ["Rolled"]
    assert [each.kind.value for each in plan_of(job(), served(job())).changes] == ["Unchanged"]
