# ruff: noqa: E501 - tables read better in rows
"""What the API server refuses of workloads, and what it takes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.document_reader import Document
from kpreempt.verdict.check import ChangeKind
from tests.unit.analysis.rollout.changes import changed, plan_of, workload
from tests.unit.analysis.rollout.test_plan import deep


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(
            changed(workload(), "spec.template.metadata.labels", {"app": "web"}),
            'spec.template.metadata.labels: Invalid value: {"app": "web"}: `selector` does not match template `labels`',
            id="a label with another value",
        ),
        pytest.param(
            changed(workload("DaemonSet"), "spec.template.metadata.labels", {}),
            "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`",
            id="a label that the template does not have",
        ),
        pytest.param(
            changed(workload("StatefulSet"), "spec.selector", {}),
            "spec.selector: Invalid value: {}: empty selector is invalid for statefulset",
            id="no selector",
        ),
        pytest.param(
            changed(workload(), "spec.template.spec.containers", []),
            "spec.template.spec.containers: Required value",
            id="no container",
        ),
        pytest.param(
            changed(workload("CronJob"), "spec.jobTemplate.spec.template.spec.containers", None),
            "spec.jobTemplate.spec.template.spec.containers: Required value",
            id="no container of a CronJob",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 0}}),
            "spec.strategy.rollingUpdate.maxUnavailable: Invalid value: 0: may not be 0 when `maxSurge` is 0",
            id="a rollout that cannot begin",
        ),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
            "spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero",
            id="a DaemonSet that surges and gives up",
        ),
        pytest.param(
            workload(minReadySeconds=600),
            "spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds",
            id="a deadline before anything is ready",
        ),
    ],
)
def test_what_the_api_server_refuses_is_a_rejection_at_its_field(document: Document, problem: str) -> None:
    plan = plan_of(document)
    assert [(each.kind, each.line) for each in plan.changes] == [(ChangeKind.REJECTED, 1)]
    assert plan.rejections == {f"{document['kind']} shop/api": problem}
    assert plan.workloads == []


@pytest.mark.parametrize(
    "document",
    [
        pytest.param(workload(strategy={"type": "Recreate"}), id="all at once"),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}),
            id="a DaemonSet that surges",
        ),
        pytest.param(workload("DaemonSet", updateStrategy={"type": "OnDelete"}), id="a DaemonSet that waits"),
        pytest.param(
            changed(workload(), "spec.selector", {"matchExpressions": [{"key": "app", "operator": "Exists"}]}),
            id="a selector of expressions",
        ),
    ],
)
def test_what_the_api_server_takes_is_none(document: Document) -> None:
    assert [each.kind for each in plan_of(document).changes] == [ChangeKind.CREATED]


def _service(**spec: Any) -> Document:
    ports = [{"port": 80}]
    metadata = {"name": "api", "namespace": "shop"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": {"ports": ports, **spec}}


def _budget(**spec: Any) -> Document:
    metadata = {"name": "api", "namespace": "shop"}
    spec = {"selector": {"matchLabels": {"app": "api"}}, **spec}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


@pytest.mark.parametrize(
    ("wanted", "live"),
    [
        pytest.param(_service(), _service(), id="a Service without addresses"),
        pytest.param(_service(clusterIP="10.0.0.1"), _service(), id="a Service whose address only the manifest has"),
        pytest.param(workload("Job", parallelism=2), workload("Job"), id="a Job without generated labels"),
        pytest.param(workload("ReplicaSet"), changed(workload("ReplicaSet"), "spec.template", ...), id="no template"),
        pytest.param(workload("Job"), changed(workload("Job"), "spec.template", ...), id="a Job without its template"),
        pytest.param(workload(), changed(workload(), "spec", ...), id="nothing but metadata"),
        pytest.param(workload(), {**workload(), "spec": {"x": deep(400)}}, id="a template beyond all depths"),
    ],
)
def test_what_a_dump_lacks_of_a_cluster_s_object_is_no_rejection(wanted: Document, live: Document) -> None:
    live = {**live, "metadata": {**live["metadata"], "uid": "u"}}
    assert plan_of(wanted, live).rejections == {}
    assert plan_of(wanted, live, has_documents=False).rejections == {}


@pytest.mark.parametrize(
    ("last", "is_rejected"),
    [
        pytest.param(_budget(minAvailable=1), False, id="it was applied and goes"),
        pytest.param(_budget(), True, id="it was not applied and stays"),
        pytest.param(None, False, id="unknown, because another tool applied it"),
    ],
)
def test_a_field_that_only_the_cluster_has_counts_if_it_stays(last: Document | None, *, is_rejected: bool) -> None:
    live = _budget(minAvailable=1)
    if last is not None:
        live = changed(live, "metadata.annotations", {LAST_APPLIED: json.dumps(last)})
    plan = plan_of(_budget(maxUnavailable=1), live)
    reasons = [each.partition(": minAvailable")[2] for each in plan.rejections.values()]
    assert reasons == [" and maxUnavailable cannot be both set"] * is_rejected
