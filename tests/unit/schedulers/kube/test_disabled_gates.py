"""Gates that are off by default, and objects that use them: what the gate would change is reported."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.model.pod import Pod
from kpreempt.schedulers.kube.disabled_gates import assume_of_pod, assume_of_pods
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.snapshot.decode import decode_object
from kpreempt.verdict import AssumptionKind

DEFERRED = {"type": "PodResizePending", "status": "True", "reason": "Deferred"}


def pod(name: str = "p", *, conditions: list[dict[str, Any]] | None = None, **spec: Any) -> Pod:
    document = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "ns"},
        "spec": {"containers": [{"name": "main"}], **spec},
        "status": {"conditions": conditions or []},
    }
    found = decode_object("Pod", document, source="test")
    assert isinstance(found, Pod)
    return found


GROUPED = pod(schedulingGroup={"podGroupName": "g"})
CLAIMING = pod(resourceClaims=[{"name": "gpu"}])
WITH_REQUESTS = pod(resources={"requests": {"cpu": "1"}})
COMPARING = pod(tolerations=[{"key": "sla", "operator": "Gt", "value": "9"}])
GROUPS, DEVICES, REQUESTS = "GenericWorkload", "DynamicResourceAllocation", "PodLevelResources"
COMPARISON = "TaintTolerationComparisonOperators"
DEFAULT, SET, ABSENT = "is assumed to be off, the default", "is set to off", "does not have the feature gate"


@pytest.mark.parametrize(
    ("requested", "version", "gates", "field", "gate", "state"),
    [
        (GROUPED, "1.36", {}, "spec.schedulingGroup", GROUPS, DEFAULT),
        (GROUPED, "1.37", {}, "spec.schedulingGroup", GROUPS, DEFAULT),
        (GROUPED, "1.34", {}, "spec.schedulingGroup", GROUPS, ABSENT),
        (pod(workloadRef={"name": "w", "podGroup": "g"}), "1.35", {}, "spec.workloadRef", GROUPS, DEFAULT),
        (CLAIMING, "1.33", {}, "spec.resourceClaims", DEVICES, DEFAULT),
        (CLAIMING, "1.34", {DEVICES: False}, "spec.resourceClaims", DEVICES, SET),
        (WITH_REQUESTS, "1.31", {}, "spec.resources", REQUESTS, ABSENT),
        (WITH_REQUESTS, "1.33", {}, "spec.resources", REQUESTS, DEFAULT),
        (WITH_REQUESTS, "1.36", {REQUESTS: False}, "spec.resources", REQUESTS, SET),
        (COMPARING, "1.34", {}, "spec.tolerations[].operator", COMPARISON, ABSENT),
        (COMPARING, "1.37", {}, "spec.tolerations[].operator", COMPARISON, DEFAULT),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_the_gate_that_a_pod_needs_is_reported(
    requested: Pod, version: str, gates: dict[str, bool], field: str, gate: str, state: str
) -> None:
    (assumption,) = assume_of_pod(requested, behavior(version, gates))
    assert (assumption.subject, assumption.field, assumption.kind) == ("Pod ns/p", field, AssumptionKind.UNMODELED)
    assert f"the feature gate {gate}" in assumption.message
    assert state in assumption.message


def test_label_keys_of_affinity_count_though_the_version_drops_them_by_default() -> None:
    term = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["pod-template-hash"]}
    requested = pod(affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}})
    (assumption,) = assume_of_pod(requested, behavior("1.30"))
    assert "MatchLabelKeysInPodAffinity, which is off by default, is assumed to be on" in assumption.message
    assert [assume_of_pod(requested, behavior(each)) for each in ("1.31", "1.33", "1.37")] == [[], [], []]
    (assumption,) = assume_of_pod(requested, behavior("1.32", {"MatchLabelKeysInPodAffinity": False}))
    assert "MatchLabelKeysInPodAffinity, which is set to off, is assumed to be on" in assumption.message


@pytest.mark.parametrize(
    ("requested", "version", "gates"),
    [
        pytest.param(pod(), "1.37", {}, id="nothing of the kind"),
        pytest.param(pod(resourceClaims=[{"name": "gpu"}]), "1.34", {}, id="on by default"),
        pytest.param(pod(resources={}), "1.33", {"PodLevelResources": True}, id="set"),
    ],
)
def test_a_gate_that_is_on_is_no_assumption(requested: Pod, version: str, gates: dict[str, bool]) -> None:
    assert assume_of_pod(requested, behavior(version, gates)) == []


def test_pods_of_groups_in_the_cluster_are_reported_together() -> None:
    pods = [pod(name, schedulingGroup={"podGroupName": "g"}) for name in ("b", "a", "c")]
    (assumption,) = assume_of_pods([pod("x"), *pods], behavior("1.37"))
    assert assumption.subject == "Pods ns/a and 2 more"
    assert assumption.kind == AssumptionKind.UNMODELED


def test_deferred_resizes_are_reported_if_the_version_has_the_gate() -> None:
    deferred = pod("r", conditions=[DEFERRED], nodeName="n")
    (assumption,) = assume_of_pods([deferred], behavior("1.37"))
    # An alpha gate, which is off in 1.37.
    assert f"InPlacePodVerticalScalingSchedulerPreemption {DEFAULT}" in assumption.message
    # A kubelet defers without it, too: that alone shuts no gate.
    assert assumption.kind == AssumptionKind.INFORMATIONAL
    assert assume_of_pods([deferred], behavior("1.36")) == []
    assert (
        assume_of_pods([pod("r", conditions=[DEFERRED | {"reason": "Infeasible"}], nodeName="n")], behavior("1.37"))
        == []
    )
