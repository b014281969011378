# ruff: noqa: E501 - tables of specs read better in rows
"""What is rejected of Deployments, ReplicaSets, StatefulSets, DaemonSets and ReplicationControllers."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.defaults import with_defaults
from kpreempt.admission.validation import Server, problems_of

POD = {"containers": [{"name": "a", "image": "a"}]}
TEMPLATE: dict[str, Any] = {"metadata": {"labels": {"app": "a"}}, "spec": POD}
SPECS: dict[str, dict[str, Any]] = {
    "Deployment": {},
    "ReplicaSet": {},
    "StatefulSet": {"volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}]},
    "DaemonSet": {},
    "ReplicationController": {"selector": {"app": "a"}},
}  # fmt: skip


def workload(kind: str, spec: str = "{}", metadata: str = "{}") -> dict[str, Any]:
    """A valid workload with changed fields of its spec; ``null`` removes a field."""
    base = {"selector": {"matchLabels": {"app": "a"}}, "template": TEMPLATE, **SPECS[kind]}
    changed = {**base, **yaml.safe_load(spec)}
    return with_defaults(
        {
            "apiVersion": "v1" if kind == "ReplicationController" else "apps/v1",
            "kind": kind,
            "metadata": {"name": "a", **yaml.safe_load(metadata)},
            "spec": {key: value for key, value in changed.items() if value is not None},
        }
    )


def found(document: dict[str, Any], old: dict[str, Any] | None = None, minor: int = 36) -> list[str]:
    return [str(each) for each in problems_of(document, old, Server(minor))]


NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"
MISMATCH = "spec.template.metadata.labels: Invalid value: {}: `selector` does not match template `labels`"
TERMINATING = "{metadata: {labels: {app: a}}, spec: {restartPolicy: Never, activeDeadlineSeconds: 1, containers: [{name: a, image: a}]}}"
REJECTED: list[tuple[str, str, list[str]]] = [
    ("Deployment", "replicas: -1", [f"spec.replicas: {NEGATIVE}"]),
    ("Deployment", "revisionHistoryLimit: -1", [f"spec.revisionHistoryLimit: {NEGATIVE}"]),
    ("Deployment", "minReadySeconds: 600", ["spec.progressDeadlineSeconds: Invalid value: 600: must be greater than minReadySeconds"]),
    ("Deployment", "progressDeadlineSeconds: -1", [f"spec.progressDeadlineSeconds: {NEGATIVE}", "spec.progressDeadlineSeconds: Invalid value: -1: must be greater than minReadySeconds"]),
    ("Deployment", "selector: null", ["spec.selector: Required value"]),
    ("Deployment", "selector: {}", ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
    ("Deployment", "selector: {matchExpressions: [{key: app, operator: Is}]}", ['spec.selector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator']),
    ("Deployment", "selector: {matchExpressions: [{key: app, operator: NotIn, values: [a]}]}", [MISMATCH.format('{"app": "a"}')]),
    ("Deployment", f"template: {TERMINATING}", ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"', "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicaSet is not Supported"]),
    ("Deployment", "template: {metadata: {labels: {app: a}}, spec: {containers: []}}", ["spec.template.spec.containers: Required value"]),
    ("Deployment", "strategy: {type: Recreate, rollingUpdate: {maxSurge: 1}}", ["spec.strategy.rollingUpdate: Forbidden: may not be specified when strategy `type` is 'Recreate'"]),
    ("Deployment", "strategy: {type: Rolling}", ['spec.strategy.type: Unsupported value: "Rolling": supported values: "Recreate", "RollingUpdate"']),
    ("Deployment", "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 0%}}", ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "0%": may not be 0 when `maxSurge` is 0']),
    ("Deployment", "strategy: {rollingUpdate: {maxSurge: 300%, maxUnavailable: 101%}}", ['spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": must not be greater than 100%']),
    ("Deployment", "strategy: {rollingUpdate: {maxSurge: -1}}", [f"spec.strategy.rollingUpdate.maxSurge: {NEGATIVE}"]),
    ("Deployment", "strategy: {rollingUpdate: {maxSurge: '5'}}", ["spec.strategy.rollingUpdate.maxSurge: Invalid value: \"5\": a valid percent string must be a numeric string followed by an ending '%' (regex used for validation is '[0-9]+%')"]),
    ("ReplicaSet", "minReadySeconds: -1", [f"spec.minReadySeconds: {NEGATIVE}"]),
    ("ReplicaSet", "selector: {}", ["spec.selector: Invalid value: {}: empty selector is invalid for deployment"]),
    ("DaemonSet", "selector: null", [MISMATCH.format('{"app": "a"}')]),
    ("DaemonSet", "selector: {}", ["spec.selector: Invalid value: {}: empty selector is invalid for daemonset"]),
    ("DaemonSet", "updateStrategy: {type: Recreate}", ['spec.updateStrategy.type: Unsupported value: "Recreate": supported values: "OnDelete", "RollingUpdate"']),
    ("DaemonSet", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", ["spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: cannot be 0 when maxSurge is 0"]),
    ("DaemonSet", "updateStrategy: {rollingUpdate: {maxSurge: 1}}", ["spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: may not be set when maxUnavailable is non-zero"]),
    ("DaemonSet", "updateStrategy: {rollingUpdate: {maxSurge: 101%, maxUnavailable: 0}}", ['spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: "101%": must not be greater than 100%']),
    ("StatefulSet", "podManagementPolicy: Ordered", ["spec.podManagementPolicy: Invalid value: \"Ordered\": must be 'OrderedReady' or 'Parallel'"]),
    ("StatefulSet", "updateStrategy: {type: OnDelete, rollingUpdate: {partition: 1}}", ["spec.updateStrategy.rollingUpdate: Invalid value: {\"partition\": 1}: only allowed for updateStrategy 'RollingUpdate'"]),
    ("StatefulSet", "updateStrategy: {type: Recreate}", ["spec.updateStrategy.type: Invalid value: \"Recreate\": must be 'RollingUpdate' or 'OnDelete'"]),
    ("StatefulSet", "updateStrategy: {rollingUpdate: {partition: -1}}", [f"spec.updateStrategy.rollingUpdate.partition: {NEGATIVE}"]),
    ("StatefulSet", "persistentVolumeClaimRetentionPolicy: {whenScaled: Keep}", ['spec.persistentVolumeClaimRetentionPolicy.whenScaled: Unsupported value: "Keep": supported values: "Delete", "Retain"']),
    ("StatefulSet", "ordinals: {start: -1}", [f"spec.ordinals.start: {NEGATIVE}"]),
    ("StatefulSet", "selector: {}", ["spec.selector: Invalid value: {}: empty selector is invalid for statefulset"]),
    ("ReplicationController", "selector: {app: b}", [MISMATCH.format('{"app": "a"}')]),
    ("ReplicationController", "template: null", ["spec.template: Required value"]),
    ("ReplicationController", "replicas: -1", [f"spec.replicas: {NEGATIVE}"]),
    ("ReplicationController", f"template: {TERMINATING}", ['spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"', "spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported"]),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "spec", "expected"), REJECTED)
def test_invalid_specs_are_rejected(kind: str, spec: str, expected: list[str]) -> None:
    assert found(workload(kind, spec)) == expected


def test_long_percentages_are_rejected() -> None:
    document = workload("Deployment", f"strategy: {{rollingUpdate: {{maxUnavailable: {'9' * 5000}%}}}}")
    assert [each.rpartition(": ")[2] for each in found(document)] == ["must not be greater than 100%"]


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        *((kind, "{}") for kind in SPECS),
        ("Deployment", "strategy: {type: Recreate}"),
        ("Deployment", "strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 100%}}"),
        ("DaemonSet", "updateStrategy: {rollingUpdate: {maxSurge: 10%, maxUnavailable: 0}}"),
        ("DaemonSet", "updateStrategy: {type: OnDelete, rollingUpdate: {maxSurge: x}}"),
        ("StatefulSet", "revisionHistoryLimit: -1"),
        ("StatefulSet", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}"),
        ("StatefulSet", "template: {metadata: {labels: {app: a}}, spec: {hostname: A_, subdomain: A_, containers: [{name: a, image: a, volumeMounts: [{name: data, mountPath: /a}]}]}}"),
        ("ReplicationController", "selector: null"),
    ],
)  # fmt: skip
def test_valid_specs_are_accepted(kind: str, spec: str) -> None:
    assert found(workload(kind, spec)) == []


NO_CONTAINERS = "template: {metadata: {labels: {app: a}}, spec: {containers: []}}"


@pytest.mark.parametrize(
    ("spec", "first", "last"),
    [
        pytest.param("serviceName: A", 33, 99, id="the service is a name"),
        pytest.param(NO_CONTAINERS, 34, 99, id="the template is complete"),
        pytest.param("updateStrategy: {rollingUpdate: {maxUnavailable: 0}}", 37, 99, id="unavailable pods count"),
        pytest.param("updateStrategy: {rollingUpdate: {maxUnavailable: 101%}}", 37, 99, id="at most all pods"),
        pytest.param("updateStrategy: {type: Recreate}", 29, 37, id="a strategy is new"),
    ],
)
def test_stateful_sets_are_rejected_by_version(spec: str, first: int, last: int) -> None:
    document = workload("StatefulSet", spec)
    for minor in range(29, 39):
        assert bool(found(document, minor=minor)) == (first <= minor <= last), minor


def test_names_are_validated_on_creation() -> None:
    dotted = "name: a.b"
    assert [str(found(workload(kind, metadata=dotted)))[:31] for kind in ("Deployment", "StatefulSet")] == [
        "[]",
        "['metadata.name: Invalid value:",
    ]
    assert found(workload("StatefulSet", metadata=dotted), workload("StatefulSet", metadata=dotted)) == []


@pytest.mark.parametrize(("minor", "count"), [(34, 1), (35, 0)])
def test_an_unused_prefix_of_a_name_is_ignored_since_1_35(minor: int, count: int) -> None:
    assert len(found(workload("ReplicationController", metadata="generateName: A_"), minor=minor)) == count


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_selectors_never_change(kind: str) -> None:
    changed = workload(kind, "selector: {matchExpressions: [{key: app, operator: Exists}]}")
    assert [each.partition(": Invalid")[0] for each in found(changed, workload(kind))] == ["spec.selector"]
    assert found(changed, changed) == []


CLAIMS = "volumeClaimTemplates: [{metadata: {name: %s}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1024Mi}}}, status: {phase: Pending}}]"


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ("selector: {matchExpressions: [{key: app, operator: Exists}]}", "selector"),
        ("serviceName: b", "serviceName"),
        ("podManagementPolicy: Parallel", "podManagementPolicy"),
        (CLAIMS % "other", "volumeClaimTemplates"),
    ],
)
def test_stateful_sets_change_only_in_part(change: str, field: str) -> None:
    [problem] = found(workload("StatefulSet", change), workload("StatefulSet"))
    assert problem.startswith(
        f"spec.{field}: Forbidden: updates to statefulset spec for fields other than 'replicas', "
    )
    [problem] = found(workload("StatefulSet", change), workload("StatefulSet"), minor=37)
    assert problem.startswith(f"spec.{field}: Invalid value: ")
    assert problem.endswith(": field is immutable")


@pytest.mark.parametrize(
    "change",
    [
        "{replicas: 2, minReadySeconds: 1, ordinals: {start: 1}, updateStrategy: {type: OnDelete}}",
        "persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}",
        pytest.param(CLAIMS % "data", id="an equal amount and a status"),
    ],
)
def test_other_fields_of_stateful_sets_may_change(change: str) -> None:
    for minor in (29, 36, 37):
        assert found(workload("StatefulSet", change), workload("StatefulSet"), minor) == []


@pytest.mark.parametrize(("minor", "count"), [(32, 1), (33, 0)])
def test_the_history_of_a_stateful_set_may_change_since_1_33(minor: int, count: int) -> None:
    assert len(found(workload("StatefulSet", "revisionHistoryLimit: 3"), workload("StatefulSet"), minor)) == count


def test_an_invalid_template_of_a_stateful_set_is_tolerated_on_update() -> None:
    old = workload("StatefulSet", NO_CONTAINERS)
    assert found({**old, "spec": {**old["spec"], "replicas": 3}}, old) == []


def test_an_old_number_of_unavailable_pods_is_kept_and_validated() -> None:
    document = workload("StatefulSet", "updateStrategy: {rollingUpdate: {maxUnavailable: 0}}")
    assert found(document, document) == [
        "spec.updateStrategy.rollingUpdate.maxUnavailable: Invalid value: 0: cannot be 0"
    ]
