# ruff: noqa: E501 - tables read better in rows
"""Quotas of other objects than pods, and of storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from kpreempt.verdict.check import RuleId
from tests.rollouts import Document, checked, nodes, workload
from tests.unit.analysis.test_claim_binding import DB, FAST, claim


def quota(hard: dict[str, str], used: dict[str, str] | None = None) -> Document:
    metadata = {"name": "team", "namespace": "shop"}
    status: dict[str, Any] = {"status": {"hard": hard, "used": used}} if used is not None else {}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": hard}, **status}


def service(name: str) -> Document:
    spec = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "shop"}, "spec": spec}


API = workload("Deployment", "api", replicas=1)


@pytest.mark.parametrize(
    ("of", "change", "words"),
    [
        pytest.param(quota({"services": "1"}, {"services": "0"}), [service("a")], "", id="there is room"),
        pytest.param(quota({"services": "1"}, {"services": "1"}), [API], "", id="the change has none"),
        pytest.param(quota({"services": "1"}, {"services": "1"}), [service("a")], "services 2 of 1", id="there is none"),
        pytest.param(quota({"services": "1", "count/deployments.apps": "0"}, {}), [service("a"), service("b"), API], "services 2 of 1, count/deployments.apps 1 of 0", id="two kinds"),
        pytest.param(quota({"requests.storage": "30Gi"}, {"requests.storage": "20Gi"}), [claim()], "", id="storage that is there"),
        pytest.param(quota({"requests.storage": "25Gi"}, {"requests.storage": "20Gi"}), [claim()], "requests.storage 30Gi of 25Gi", id="storage that is not"),
        pytest.param(quota({"requests.storage": "15Gi", "persistentvolumeclaims": "2"}), [DB], "requests.storage 20Gi of 15Gi", id="of a StatefulSet"),
        pytest.param(quota({"fast.storageclass.storage.k8s.io/persistentvolumeclaims": "1"}), [DB], "fast.storageclass.storage.k8s.io/persistentvolumeclaims 2 of 1", id="of a storage class"),
    ],
)  # fmt: skip
def test_a_quota_that_the_change_exceeds_is_a_finding_with_the_numbers(
    of: Document, change: Sequence[Document], words: str
) -> None:
    found = checked([*nodes(3), FAST, of], change)
    assert [(each.rule, each.subject, each.detail) for each in found.findings] == (
        [(RuleId.QUOTA_REJECTIONS, "ResourceQuota shop/team", words)] if words else []
    )


def test_a_quota_of_the_change_counts_for_what_comes_with_it() -> None:
    assert checked(nodes(3), [quota({"requests.cpu": "1"}), API]).passed
    assert not checked(nodes(3), [quota({"requests.cpu": "500m"}), API]).passed


def test_what_controllers_make_may_be_too_many_for_a_quota() -> None:
    full = quota({"count/replicasets.apps": "1"}, {"count/replicasets.apps": "1"})
    found = checked([*nodes(3), full], [API])
    assert [(each.rule, each.subject) for each in found.findings] == [
        (RuleId.OUTCOME_UNCERTAIN, "ResourceQuota shop/team")
    ]
