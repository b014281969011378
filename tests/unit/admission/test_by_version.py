"""What the API server of one version makes of a new pod, and that of another does not."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.admission import DEFAULT_RULES, Admission, ApiServerRules, admit
from kpreempt.admission.daemon_sets import daemon_node_names
from kpreempt.analysis.algorithms import api_server_of, api_server_rules, controller_rules
from kpreempt.controllers.actions import DEFAULT_RULES as DEFAULT_CONTROLLERS
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.node import Node
from kpreempt.model.pod import Pod
from kpreempt.model.workloads import LimitRange
from kpreempt.scheduler_table import RELEASES
from kpreempt.schedulers.interface import Settings
from kpreempt.schedulers.kube.scheduler import KubeScheduler
from kpreempt.schedulers.kube.versions import behavior
from kpreempt.snapshot.decode import decode_object

TERM = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["v"], "mismatchLabelKeys": ["app"]}
SPREAD = {"topologyKey": "zone", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}}
KEYS: dict[str, Any] = {
    "affinity": {
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]},
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": TERM}]},
    },
    "topologySpreadConstraints": [{**SPREAD, "matchLabelKeys": ["v"]}],
}


def rules_in(version: str, **gates: bool) -> ApiServerRules:
    return api_server_rules(KubeScheduler(behavior=behavior(version, gates)).settings)


def make_pod(requests: dict[str, str] | None = None, limits: dict[str, str] | None = None, **spec: Any) -> Pod:
    metadata = {"name": "a", "namespace": "default", "labels": {"app": "web", "v": "2"}}
    resources = {"requests": requests or {}, "limits": limits or {}}
    found = decode_object(
        "Pod", {"metadata": metadata, "spec": {"containers": [{"name": "c", "resources": resources}], **spec}}
    )
    assert isinstance(found, Pod)
    return found


def selectors(admission: Admission) -> tuple[str, ...]:
    """Of the required term, of the preferred one, and of the constraint; with the keys that are left."""
    spec = admission.pod.spec
    assert spec.affinity is not None
    assert spec.affinity.pod_affinity is not None
    assert spec.affinity.pod_anti_affinity is not None
    near = spec.affinity.pod_affinity.preferred[0].pod_affinity_term
    far = spec.affinity.pod_anti_affinity.required[0]
    (spread,) = spec.topology_spread_constraints
    reported = [
        f"{str(each.label_selector).removeprefix('everything')} {'/'.join(each.match_label_keys)}".strip()
        for each in (far, near, spread)
    ]
    assert bool(far.mismatch_label_keys) == bool(far.match_label_keys)
    return tuple(reported)


MERGED = "v in (2),app notin (web) v"


@pytest.mark.parametrize(
    ("version", "gates", "expected"),
    [
        pytest.param("1.29", {}, ("", "", "v"), id="dropped by default"),
        pytest.param("1.30", {"MatchLabelKeysInPodAffinity": True}, (MERGED, MERGED, "v"), id="unless the gate is on"),
        pytest.param("1.31", {}, (MERGED, MERGED, "v"), id="those of affinity are merged"),
        pytest.param("1.33", {}, (MERGED, MERGED, "v"), id="those of constraints are left to the scheduler"),
        pytest.param("1.34", {}, (MERGED, MERGED, "v in (2) v"), id="and then merged as well"),
        pytest.param("1.37", {}, (MERGED, MERGED, "v in (2) v"), id="from then on"),
        pytest.param(
            "1.36",
            {"MatchLabelKeysInPodTopologySpreadSelectorMerge": False},
            (MERGED, MERGED, "v"),
            id="unless the gate is off",
        ),
        pytest.param("1.33", {"MatchLabelKeysInPodTopologySpread": False}, (MERGED, MERGED, ""), id="or dropped"),
    ],
)
def test_label_keys(version: str, gates: dict[str, bool], expected: tuple[str, ...]) -> None:
    admission = admit(make_pod(**KEYS), ClusterSnapshot(), rules_in(version, **gates))
    assert selectors(admission) == expected


def test_what_is_dropped_is_reported_with_its_gate() -> None:
    pod = make_pod(**KEYS, resources={"limits": {"cpu": "2"}})
    reported = admit(pod, ClusterSnapshot(), rules_in("1.29")).assumptions
    assert [(each.field, each.message.partition(" is assumed")[0].rpartition(" ")[2]) for each in reported] == [
        ("spec.resources", "PodLevelResources"),
        ("spec.affinity[].matchLabelKeys", "MatchLabelKeysInPodAffinity"),
    ]
    assert admit(pod, ClusterSnapshot(), rules_in("1.34")).assumptions == []
    assert admit(make_pod(), ClusterSnapshot(), rules_in("1.29")).assumptions == []


DEFAULT_REQUESTS = {"type": "Container", "defaultRequest": {"cpu": "1"}, "default": {"cpu": "2"}}


@pytest.mark.parametrize(
    ("version", "pod", "expected"),
    [
        pytest.param("1.33", make_pod(resources={"limits": {"cpu": "4"}}), None, id="dropped where the gate is off"),
        pytest.param("1.34", make_pod(resources={"limits": {"cpu": "4"}}), "4 of 4", id="before LimitRanges"),
        pytest.param("1.36", make_pod(resources={"limits": {"cpu": "4"}}), "4 of 4", id="so until 1.36"),
        pytest.param("1.37", make_pod(resources={"limits": {"cpu": "4"}}), "1 of 4", id="and after them since"),
        pytest.param("1.36", make_pod(resources={"requests": {"cpu": "3"}}), "3 of -", id="no limit"),
        pytest.param("1.37", make_pod(resources={"requests": {"cpu": "1500m"}}), "1500m of 2", id="the containers'"),
        pytest.param("1.37", make_pod(resources={"requests": {"cpu": "3"}}), "3 of 3", id="or the request if higher"),
        pytest.param("1.37", make_pod(resources={"requests": {"memory": "1Gi"}}), "1 of 2", id="of all resources"),
        pytest.param("1.37", make_pod(resources={}), "- of -", id="but of none where nothing is stated"),
    ],
)
def test_resources_of_the_whole_pod(version: str, pod: Pod, expected: str | None) -> None:
    usual = {"metadata": {"name": "usual", "namespace": "default"}, "spec": {"limits": [DEFAULT_REQUESTS]}}
    limit_range = decode_object("LimitRange", usual)
    assert isinstance(limit_range, LimitRange)
    admission = admit(pod, ClusterSnapshot(limit_ranges=[limit_range]), rules_in(version))
    resources = admission.pod.spec.resources
    if expected is None:
        assert resources is None
    else:
        assert resources is not None
        shown = " of ".join(str(each.get("cpu", "-")) for each in (resources.requests, resources.limits))
        assert shown == expected
    reported = {each.path: each.value for each in admission.changes if each.path.startswith("spec.resources")}
    assert bool(reported) == (resources != pod.spec.resources and resources is not None)


def test_the_default_rules_are_those_of_the_version_in_use_if_none_is_named() -> None:
    settings = KubeScheduler().settings
    assert api_server_rules(settings) == DEFAULT_RULES
    assert controller_rules(settings) == DEFAULT_CONTROLLERS


def test_a_scheduler_from_before_has_none_of_them() -> None:
    assert not any(api_server_rules(Settings()))
    assert not any(controller_rules(Settings()))


@pytest.mark.parametrize("minor", RELEASES)
def test_the_rules_of_a_cluster_are_those_of_its_version(minor: str) -> None:
    assert api_server_of(ClusterSnapshot(version=f"v{RELEASES[minor]}")) == rules_in(minor)
    assert not any(api_server_of(ClusterSnapshot(version="v1.18.20")))


def test_a_daemon_set_compares_numbers_of_taints_where_the_scheduler_does() -> None:
    taint = {"key": "sla", "value": "950", "effect": "NoSchedule"}
    node = decode_object("Node", {"metadata": {"name": "n"}, "spec": {"taints": [taint]}})
    assert isinstance(node, Node)
    pod = make_pod(tolerations=[{"key": "sla", "operator": "Gt", "value": "900", "effect": "NoSchedule"}])
    assert daemon_node_names(pod, [node], rules_in("1.36")) == []
    assert daemon_node_names(pod, [node], rules_in("1.36", TaintTolerationComparisonOperators=True)) == ["n"]
