# ruff: noqa: E501 - tables read better in rows
"""At which size a change is simulated where an autoscaler sets it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kpreempt.analysis.check.rollout.apply import LAST_APPLIED
from kpreempt.analysis.check.rollout.plan import LiveDocuments, ManifestDocument, plan_change
from kpreempt.analysis.check.rollout.records import ApplyOptions
from kpreempt.snapshot.decode import decode_object
from kpreempt.verdict import AssumptionKind
from tests.unit.analysis.rollout.changes import changed, cluster_of, served, template, workload

Document = dict[str, Any]


def autoscaler(least: int = 1, most: int = 9, name: str = "h", target: str = "api", **spec: Any) -> Document:
    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}
    spec = {"scaleTargetRef": reference, "minReplicas": least, "maxReplicas": most, **spec}
    metadata = {"name": name, "namespace": "shop"}
    return {"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": metadata, "spec": spec}


def stored(document: Document) -> Document:
    return changed(document, "metadata.annotations", {LAST_APPLIED: json.dumps(document)})


def planned(manifests: list[Document], *live: Document, at_most: bool = False) -> Any:
    given = [ManifestDocument(each) for each in manifests]
    options = ApplyOptions(namespace="shop", max_autoscaled=at_most)
    return plan_change(cluster_of(*live), options.prepared(given), LiveDocuments(live), decode_object, options)


def failing(plan: Any) -> list[tuple[str, str]]:
    return [(each.subject, each.field) for each in plan.assumptions if each.kind is not AssumptionKind.INFORMATIONAL]


IMAGE = template(image="shop/api:2")
API = "Deployment shop/api"


@pytest.mark.parametrize(
    ("manifest", "scalers", "at_most", "kind", "size"),
    [
        pytest.param(workload(), [autoscaler()], False, "Unchanged", 4, id="one that says no size stays"),
        pytest.param(workload(replicas=2), [autoscaler()], False, "Unchanged", 4, id="one that says a size that is set again"),
        pytest.param(workload(replicas=2, template=IMAGE), [autoscaler()], False, "Rolled", 4, id="another image, at the current size"),
        pytest.param(workload(replicas=2), [autoscaler()], True, "Scaled", 9, id="at most"),
        pytest.param(workload(template=IMAGE), [autoscaler()], True, "Rolled", 9, id="another image, at most"),
        pytest.param(workload(replicas=2), [autoscaler(6)], False, "Scaled", 6, id="below the least"),
        pytest.param(workload(replicas=2), [autoscaler(1, 3)], False, "Scaled", 3, id="above the most"),
        pytest.param(workload(replicas=0), [autoscaler()], False, "Scaled", 0, id="none, which switches it off"),
        pytest.param(workload(replicas=2), [autoscaler(target="other")], False, "Scaled", 2, id="an autoscaler of something else"),
        pytest.param(workload(replicas=2), [autoscaler(5, 3)], False, "Scaled", 2, id="bounds that the server refuses"),
        pytest.param(workload(), [autoscaler(6), autoscaler(7, name="other")], False, "Unchanged", 4, id="two, which do nothing"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("is_given", [False, True], ids=["in the cluster", "in the change"])
def test_size(
    manifest: Document, scalers: list[Document], kind: str, size: int, *, at_most: bool, is_given: bool
) -> None:
    there = served(workload(replicas=4))
    stored_ones = [stored(each) for each in scalers]
    plan = planned([*(scalers if is_given else []), manifest], there, *stored_ones, at_most=at_most)
    change = plan.changes[-1]
    assert (change.object, change.kind.value, change.replicas) == (API, kind, size)
    assert failing(plan) == []


@pytest.mark.parametrize(
    ("manifest", "scalers", "current", "sizes"),
    [
        pytest.param(workload(replicas=2), [autoscaler()], 4, [(4, 2)], id="fewer"),
        pytest.param(workload(replicas=6), [autoscaler()], 4, [(4, 6)], id="more"),
        pytest.param(workload(replicas=4), [autoscaler()], 4, [], id="just as many"),
        pytest.param(workload(), [autoscaler()], 4, [], id="none said"),
        pytest.param(workload(replicas=2), [], 4, [], id="no autoscaler"),
        pytest.param(workload(replicas=2), [autoscaler()], 0, [], id="switched off"),
        pytest.param(workload(replicas=0), [autoscaler()], 4, [], id="switched off by the change"),
        pytest.param(workload(replicas=2), [autoscaler(), autoscaler(name="other")], 4, [], id="two, which do nothing"),
    ],
)
def test_a_manifest_that_resets_the_size(
    manifest: Document, scalers: list[Document], current: int, sizes: list[tuple[int, int]]
) -> None:
    plan = planned([manifest], served(workload(replicas=current)), *map(stored, scalers))
    assert [(each.current, each.written) for each in plan.resets] == sizes


@pytest.mark.parametrize(("was", "sizes"), [({"replicas": 4}, [(4, 1)]), ({}, [])], ids=["a size", "none"])
def test_a_size_that_is_said_no_more_is_taken_away_where_it_was_applied(
    was: Document, sizes: list[tuple[int, int]]
) -> None:
    applied = {LAST_APPLIED: json.dumps(workload(**was))}
    there = changed(served(workload(replicas=4)), "metadata.annotations", applied)
    plan = planned([workload()], there, stored(autoscaler()))
    assert [(each.current, each.written) for each in plan.resets] == sizes


def test_a_size_that_an_autoscaler_has_set_just_so_is_reported() -> None:
    plan = planned([workload(replicas=4)], served(workload(replicas=4)), stored(autoscaler()))
    assert [each.message for each in plan.assumptions] == [
        "the manifest sets 4, so each apply resets the replicas that HorizontalPodAutoscaler shop/h has set"
    ]


def test_a_size_that_is_set_again_is_reported() -> None:
    plan = planned([workload(replicas=2)], served(workload(replicas=4)), stored(autoscaler()))
    assert [(each.subject, each.message) for each in plan.assumptions] == [
        (API, "the manifest sets 2, but HorizontalPodAutoscaler shop/h overrides it; simulated with 4")
    ]


@pytest.mark.parametrize(
    ("scaler", "at_most", "red"),
    [
        pytest.param(autoscaler(1, 20), False, [], id="it may go further now, which is simulated apart"),
        pytest.param(autoscaler(1, 20), True, [], id="it may go further now, and that is simulated"),
        pytest.param(autoscaler(1, 20, target="other"), True, [("HorizontalPodAutoscaler shop/h", "spec")], id="of what is not in the change"),
        pytest.param(autoscaler(5, 3), True, [], id="bounds that the server refuses, which is a rejection"),
        pytest.param(autoscaler(metrics=[{"type": "Resource"}]), False, [], id="another metric"),
        pytest.param(autoscaler(name="new"), False, [], id="a new one"),
    ],
)  # fmt: skip
def test_an_autoscaler_that_is_new_or_changed_counts_unless_its_most_is_simulated(
    scaler: Document, red: list[Any], *, at_most: bool
) -> None:
    there = (served(workload(replicas=4)), stored(autoscaler()))
    assert failing(planned([scaler, workload()], *there, at_most=at_most)) == red


def test_a_new_workload_begins_with_the_least() -> None:
    plan = planned([autoscaler(3), workload()], stored(autoscaler(name="other", target="other")))
    assert plan.changes[-1].replicas == 3
    assert plan.autoscalers == [("HorizontalPodAutoscaler shop/h", API)]
