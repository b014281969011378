"""Annotations of pods where a plugin wants all of them: the map and the fields that are always read stay in step."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest

from kpreempt.analysis.algorithms import equivalence_key
from kpreempt.analysis.explain.single_edits import Edit, edit_pod
from kpreempt.analysis.what_if import Assignment, Overrides, pod_document
from kpreempt.controllers.replacement import replacement_of
from kpreempt.model.extra_fields import ExtraFields
from kpreempt.model.meta import LAST_APPLIED, OwnerReference
from kpreempt.model.pod import Pod, PodAnnotations, annotations_of, with_annotations, without_annotations
from kpreempt.schedulers.kube.framework import decision_cache
from kpreempt.snapshot.decode import object_decoder
from kpreempt.verdict.remedies import RemedyStage
from tests.factories import make_pod

GROUP, NOMINATED = "scheduling.k8s.io/group-name", "NominatedNodeName"
COST = "controller.kubernetes.io/pod-deletion-cost"
TOLD = {"example.com/rack": "r1", GROUP: "g", NOMINATED: "n1", COST: "5"}


def fields(pod: Pod) -> PodAnnotations:
    assert pod.metadata.annotations is not None
    return pod.metadata.annotations


def test_both_ways_to_read_them_agree() -> None:
    pod = with_annotations(make_pod("a"), {**TOLD, LAST_APPLIED: "{}"})
    assert annotations_of(pod) == TOLD
    assert (fields(pod).group_name, fields(pod).nominated_node_name, fields(pod).deletion_cost) == ("g", "n1", "5")
    assert without_annotations(pod).metadata.annotations == PodAnnotations("n1", "g", deletion_cost="5")


def test_without_any_a_pod_is_as_it_was() -> None:
    pod = make_pod("a")
    assert with_annotations(pod, {}) == with_annotations(pod, {LAST_APPLIED: "{}"}) == without_annotations(pod) == pod
    assert annotations_of(pod) == {}
    assert without_annotations(with_annotations(pod, {"example.com/rack": "r1"})) == pod


def test_a_changed_field_is_changed_in_the_map() -> None:
    changed = fields(with_annotations(make_pod("a"), TOLD)).changed(group_name="other", nominated_node_name="")
    pod = make_pod("a")
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=changed))
    assert annotations_of(pod) == {"example.com/rack": "r1", GROUP: "other", COST: "5"}
    assert (changed.group_name, changed.nominated_node_name) == ("other", "")
    assert PodAnnotations(group_name="g").changed(group_name="x") == PodAnnotations(group_name="x")


def test_the_pod_in_the_place_of_another_has_those_of_the_template() -> None:
    pod = with_annotations(make_pod("a"), TOLD)
    owner = OwnerReference("ReplicaSet", "api", "u", "apps/v1", controller=True)
    pod = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, owner_references=[owner]))
    made = replacement_of(pod, suffix="x", uid="u", now=datetime(2026, 11, 21, tzinfo=UTC))
    assert made is not None
    assert annotations_of(made) == {"example.com/rack": "r1", GROUP: "g"}
    assert (fields(made).group_name, fields(made).nominated_node_name) == ("g", "")


def test_they_outlive_plain_data_and_edits() -> None:
    pod = with_annotations(make_pod("a", cpu="1"), TOLD)
    document = pod_document(pod)
    assert document["metadata"]["annotations"] == TOLD
    assert object_decoder(ExtraFields(pod_annotations=True))("Pod", document) == pod
    overrides = Overrides(assignments=[Assignment("spec.nodeSelector.zone", "z")])
    edit = Edit(stage=RemedyStage.REQUESTER, changes=[], overrides=overrides)
    edited = edit_pod(pod, edit)
    assert (annotations_of(edited), edited.spec.node_selector) == (TOLD, {"zone": "z"})


@pytest.mark.parametrize(
    "of", [equivalence_key, decision_cache.equivalence_key], ids=["of verdicts", "of the decision_cache"]
)
def test_pods_with_other_annotations_are_not_alike_once_they_are_read(of: Callable[[Pod], bytes]) -> None:
    rack = {"example.com/rack": "r1"}
    first, second = (with_annotations(make_pod(name), rack) for name in ("a", "b"))
    other = with_annotations(make_pod("c"), {"example.com/rack": "r2"})
    assert of(first) == of(second)
    assert len({of(first), of(other), of(make_pod("d"))}) == 3
