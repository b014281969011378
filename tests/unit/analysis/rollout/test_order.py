# ruff: noqa: E501 - tables read better in rows
"""What of a change comes when: hooks of Helm, hooks and waves of Argo CD."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.hooks import Applier
from kpreempt.verdict.check import Check, RuleId
from kpreempt.verdict.simulation import StepKind
from tests.rollouts import Document, checked, end_of, nodes, running, workload

HELM, WEIGHT = "helm.sh/hook", "helm.sh/hook-weight"
ARGO, WAVE = "argocd.argoproj.io/hook", "argocd.argoproj.io/sync-wave"


def annotated(document: Document, *pairs: str) -> Document:
    """The object with annotations: a name, its value, and so on."""
    document = copy.deepcopy(document)
    document["metadata"]["annotations"] = dict(zip(pairs[::2], pairs[1::2], strict=True))
    return document


def job(name: str, *pairs: str, **more: Any) -> Document:
    return annotated(workload("Job", name, cpu="100m", **more), *pairs)


def api(name: str = "api", *pairs: str, **more: Any) -> Document:
    return annotated(workload("Deployment", name, replicas=1, **{"cpu": "100m", **more}), *pairs)


def pod(name: str, *pairs: str) -> Document:
    spec = workload("Job", name, cpu="100m")["spec"]["template"]["spec"]
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}
    return annotated(document, *pairs)


def landings(found: Check) -> dict[str, float]:
    """When the first pod of each name lands, without what controllers put behind it."""
    at: dict[str, float] = {}
    for step in found.simulation.steps:
        if step.kind is StepKind.BOUND:
            at.setdefault(step.pod.removeprefix("shop/").partition("-")[0], step.at)
    return at


@pytest.mark.parametrize(
    ("applied_by", "change", "at"),
    [
        pytest.param(None, [api(), job("one")], {"api": 0, "one": 0}, id="no annotations"),
        pytest.param(Applier.HELM, [api(), job("one", HELM, "pre-upgrade")], {"one": 0, "api": 600}, id="a hook before"),
        pytest.param(Applier.HELM, [api(), job("one", HELM, "post-install"), job("two", HELM, "post-install")], {"api": 0, "one": 0, "two": 600}, id="Helm waits for hooks, not for what it installs"),
        pytest.param(Applier.HELM, [job("one", HELM, "pre-install", WEIGHT, "5"), job("two", HELM, "pre-install", WEIGHT, "-5"), api()], {"two": 0, "one": 600, "api": 1200}, id="by weight"),
        pytest.param(Applier.HELM, [job("two", HELM, "pre-install", WEIGHT, "x"), job("one", HELM, "pre-install,pre-upgrade"), api()], {"one": 0, "two": 600, "api": 1200}, id="by name, where weights are equal"),
        pytest.param(Applier.HELM, [pod("one", HELM, "pre-install"), api()], {"one": 0, "api": 600}, id="a plain pod"),
        pytest.param(Applier.HELM, [api("one", HELM, "pre-install", cpu="100m"), api()], {"one": 0, "api": 0}, id="Helm does not wait for a Deployment"),
        pytest.param(Applier.HELM, [api(), job("one", HELM, "pre-upgrade", activeDeadlineSeconds=60)], {"one": 0, "api": 60}, id="a hook with a deadline"),
        pytest.param(Applier.ARGOCD, [api(), job("one", ARGO, "PreSync"), job("two", ARGO, "PostSync")], {"one": 0, "api": 600, "two": 600}, id="the phases of Argo CD"),
        pytest.param(Applier.ARGOCD, [api(), job("one", HELM, "pre-install"), api("two", WAVE, "1")], {"one": 0, "api": 600, "two": 600}, id="Argo CD takes the hooks of Helm for its own"),
        pytest.param(Applier.ARGOCD, [api("one", WAVE, "2"), job("two", WAVE, "1"), api()], {"api": 0, "two": 0, "one": 600}, id="a wave waits for a Job of the one before"),
        pytest.param(Applier.ARGOCD, [api("one", WAVE, "1"), api(minReadySeconds=30)], {"api": 0, "one": 30}, id="a wave waits until the one before is available"),
        pytest.param(Applier.ARGOCD, [job("one", ARGO, "Sync", WAVE, "-1"), api()], {"one": 0, "api": 600}, id="a hook in a wave"),
        pytest.param(None, [api(), job("one", HELM, "pre-upgrade")], {"api": 0, "one": 0}, id="hooks mean nothing to kubectl, which is the default"),
        pytest.param(Applier.KUBECTL, [api("one", WAVE, "2"), job("two", ARGO, "PreSync"), api()], {"api": 0, "one": 0, "two": 0}, id="nor do waves"),
        pytest.param(Applier.HELM, [api("one", WAVE, "2"), job("two", ARGO, "PreSync"), api()], {"api": 0, "one": 0, "two": 0}, id="those of Argo CD mean nothing to Helm"),
        pytest.param(Applier.HELM, [api(), job("one", HELM, "Pre-Upgrade")], {"one": 0, "api": 600}, id="Helm knows its moments in any case"),
    ],
)  # fmt: skip
def test_a_change_comes_in_its_order(
    applied_by: Applier | None, change: Sequence[Document], at: dict[str, float]
) -> None:
    found = checked(nodes(2), change, applied_by=applied_by)
    assert landings(found) == at
    assert (found.passed, found.findings) == (True, [])


def test_a_hook_that_never_ends_is_reported_once_with_what_never_comes() -> None:
    found = checked(
        nodes(1, "1"), [job("one", HELM, "pre-upgrade", pod={"nodeName": ""}), api()], applied_by=Applier.HELM
    )
    assert found.passed
    found = checked(
        nodes(1, "1"),
        [annotated(workload("Job", "one", cpu="2"), HELM, "pre-upgrade"), api(), api("web")],
        applied_by=Applier.HELM,
    )
    assert [(each.rule, each.subject) for each in found.findings] == [(RuleId.REQUIRE_SCHEDULABLE, "Job shop/one")]
    assert found.findings[0].detail.endswith("; never applied: Deployment shop/api, Deployment shop/web")
    assert end_of(found, "Deployment shop/api").held_by == "Job shop/one"


def test_what_is_to_be_deleted_keeps_its_room_until_the_hooks_before_have_run() -> None:
    there = running(workload("Deployment", "web", replicas=1), ["n1"])
    found = checked(
        [*nodes(1), *there],
        [job("one", HELM, "pre-upgrade"), api()],
        deleted=["Deployment/web"],
        applied_by=Applier.HELM,
    )
    assert [step.at for step in found.simulation.steps if step.kind is StepKind.TERMINATING] == [600]


def test_what_is_not_yet_rolled_out_comes_back_as_it_was() -> None:
    """A pod of the old template that has to go for a hook is made again of that."""
    old = workload("Deployment", "web", replicas=1, image="one")
    new = workload("Deployment", "web", replicas=1, image="two")
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    hook = annotated(workload("Job", "one", pod={"priorityClassName": "high"}), HELM, "pre-upgrade")
    found = checked([*nodes(1, "1"), high, *running(old, ["n1"])], [hook, new], applied_by=Applier.HELM)
    owners = [step.owner for step in found.simulation.steps if step.kind is StepKind.CREATED]
    assert owners[:2] == ["Job one", "ReplicaSet web-old"]


def test_a_hook_that_runs_before_and_after_is_simulated_once_which_is_reported() -> None:
    found = checked(nodes(1), [job("one", HELM, "pre-upgrade,post-upgrade"), api()], applied_by=Applier.HELM)
    assert [(each.rule, each.subject) for each in found.findings] == [(RuleId.OUTCOME_UNCERTAIN, "Job shop/one")]


def test_a_name_that_is_made_up_is_that_of_a_hook() -> None:
    hook = job("one", HELM, "pre-upgrade")
    hook["metadata"]["generateName"] = "one-"
    del hook["metadata"]["name"]
    assert landings(checked(nodes(2), [api(), hook], applied_by=Applier.HELM)) == {"one": 0, "api": 600}
