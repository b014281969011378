"""What the API server refuses of workloads, and what it takes."""

from __future__ import annotations

import pytest

from kpreempt.analysis.document_reader import Document
from kpreempt.errors import InputError
from kpreempt.verdict.check import ChangeKind
from tests.unit.analysis.rollout.changes import changed, plan_of, workload


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        pytest.param(
            changed(workload(), "spec.template.metadata.labels", {"app": "web"}),
            "spec.selector.matchLabels: requires app=api, but the template has app=web",
            id="a label with another value",
        ),
        pytest.param(
            changed(workload("DaemonSet"), "spec.template.metadata.labels", {}),
            "spec.selector.matchLabels: requires app=api, but the template has no label app",
            id="a label that the template does not have",
        ),
        pytest.param(
            changed(workload("StatefulSet"), "spec.selector", {}), "spec.selector: is missing", id="no selector"
        ),
        pytest.param(
            changed(workload(), "spec.template.spec.containers", []),
            "spec.template.spec.containers: must have at least one container",
            id="no container",
        ),
        pytest.param(
            changed(workload("CronJob"), "spec.jobTemplate.spec.template.spec.containers", None),
            "spec.jobTemplate.spec.template.spec.containers: must have at least one container",
            id="no container of a CronJob",
        ),
        pytest.param(
            workload(strategy={"rollingUpdate": {"maxSurge": "0%", "maxUnavailable": 0}}),
            "spec.strategy.rollingUpdate.maxUnavailable: cannot be 0 if maxSurge is 0",
            id="a rollout that cannot begin",
        ),
        pytest.param(
            workload("DaemonSet", updateStrategy={"rollingUpdate": {"maxSurge": 1}}),
            "spec.updateStrategy.rollingUpdate.maxSurge: cannot be set unless maxUnavailable is 0 (default 1)",
            id="a DaemonSet that surges and gives up",
        ),
        pytest.param(
            workload(minReadySeconds=600),
            "spec.progressDeadlineSeconds: must be greater than minReadySeconds",
            id="a deadline before anything is ready",
        ),
    ],
)
def test_what_the_api_server_refuses_is_an_error_at_its_field(document: Document, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        plan_of(document)
    assert caught.value.message == f"change.yaml:1: {document['kind']} shop/api: {problem}"


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
