# ruff: noqa: E501 - tables of manifests read better in rows
"""Which updates of a pod's spec the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.pod_updates import check_spec_update

OLD = """
containers: [{name: a, image: a:1, imagePullPolicy: Always, resources: {limits: {cpu: 1000m}}}],
initContainers: [{name: i, image: i:1, imagePullPolicy: Always}], activeDeadlineSeconds: 10, nodeName: n, priority: 5,
tolerations: [{key: a, operator: Exists, tolerationSeconds: 5}], terminationGracePeriodSeconds: 30
"""
# Terms of a gated pod's node affinity, in the place of ``%s``.
GATED = """
containers: [{name: a, image: a:1}], schedulingGates: [{name: g}, {name: h}], nodeSelector: {a: b},
affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [%s]}}}
"""
TERM = "{matchExpressions: [{key: k, operator: Exists}]}"


def found(new: str, old: str) -> list[str]:
    spec, before = (yaml.safe_load(f"{{{each}}}") for each in (new, old))
    return [str(each) for each in check_spec_update(spec, before, ("spec",))]


def changed(old: str, *replacements: tuple[str, str]) -> str:
    for before, after in replacements:
        assert before in old
        old = old.replace(before, after)
    return old


ACCEPTED = [
    ("image: a:1", "image: a:2"),
    ("image: i:1", "image: i:2"),
    ("cpu: 1000m", "cpu: 1"),
    ("activeDeadlineSeconds: 10", "activeDeadlineSeconds: 5"),
    ("tolerationSeconds: 5}", "tolerationSeconds: 6}, {key: b}"),
    (", priority: 5", ""),
    ("nodeName: n", "nodeName: n, readinessGates: []"),
    ("nodeName: n", "nodeName: n, volumes: [], hostNetwork: false, restartPolicy: Always"),
]


@pytest.mark.parametrize("replacement", ACCEPTED)
def test_accepted_updates(replacement: tuple[str, str]) -> None:
    assert found(changed(OLD, replacement), OLD) == []


CHANGED = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`"
REJECTED = [
    ("name: a, image: a:1", "name: b, image: a:1", f"spec.containers[0].name: {CHANGED}"),
    ("cpu: 1000m", "cpu: 2", f"spec.containers[0].resources.limits.cpu: {CHANGED}"),
    ("nodeName: n", "nodeName: m", f"spec.nodeName: {CHANGED}"),
    ("nodeName: n", "nodeName: n, hostNetwork: true", f"spec.hostNetwork: {CHANGED}"),
    ("nodeName: n", "nodeName: n, nodeSelector: {a: b}", f"spec.nodeSelector: {CHANGED}"),
    ("nodeName: n", "nodeName: n, ephemeralContainers: [{name: e, image: e}]", f"spec.ephemeralContainers: {CHANGED}"),
    ("priority: 5", "priority: 6", f"spec.priority: {CHANGED}"),
    ("Seconds: 30", "Seconds: 20", f"spec.terminationGracePeriodSeconds: {CHANGED}"),
    ("activeDeadlineSeconds: 10", "activeDeadlineSeconds: 11", "spec.activeDeadlineSeconds: Invalid value: 11: must be less than or equal to previous value"),
    ("activeDeadlineSeconds: 10", "activeDeadlineSeconds: -1", "spec.activeDeadlineSeconds: Invalid value: -1: must be between 0 and 2147483647"),
    ("activeDeadlineSeconds: 10, ", "", "spec.activeDeadlineSeconds: Invalid value: null: must not update from a positive integer to nil value"),
    ("{key: a, operator", "{key: b, operator", "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"),
    ("nodeName: n", "nodeName: n, schedulingGates: [{name: g}]", "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, but found new scheduling gate 'g'"),
    ("initContainers: [", "initContainers: [{name: j, image: j}, ", "spec.initContainers: Forbidden: pod updates may not add or remove containers"),
]  # fmt: skip


@pytest.mark.parametrize(("before", "after", "problem"), REJECTED)
def test_rejected_updates(before: str, after: str, problem: str) -> None:
    [only] = found(changed(OLD, (before, after)), OLD)
    assert only.startswith(problem)


def test_default_tolerations_are_added_again() -> None:
    toleration = "tolerations: [{key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute, tolerationSeconds: 300}]"
    old = f"containers: [{{name: a, image: a:1}}], {toleration}"
    assert found("containers: [{name: a, image: a:1}]", old) == []


TWO = "{matchExpressions: [{key: k, operator: Exists}, {key: l, operator: Exists}]}"
AT = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
GATES = [
    (GATED % TERM, None),
    (changed(GATED % TWO, ("[{name: g}, {name: h}]", "[{name: h}]"), ("{a: b}", "{a: b, c: d}")), None),
    (changed(GATED % TERM, ("{a: b}", "{a: c}")), 'spec.nodeSelector: Invalid value: {"a": "c"}: only additions to spec.nodeSelector are allowed'),
    (GATED % f"{TERM}, {TERM}", f"{AT}: Invalid value: "),
    (GATED % "{matchFields: [{key: metadata.name, operator: In, values: [n]}]}", f"{AT}[0]: Invalid value: "),
    (changed(GATED % TERM, ("affinity: {", "affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1}]}, ")), f"spec.affinity: {CHANGED}"),
]  # fmt: skip


@pytest.mark.parametrize(("new", "problem"), GATES)
def test_gated_pods(new: str, problem: str | None) -> None:
    result = found(new, GATED % TERM)
    assert len(result) == (problem is not None)
    assert all(each.startswith(problem or "") for each in result)


def test_terms_stay_empty() -> None:
    [only] = found(GATED % TERM, GATED % "{}")
    assert only.startswith(f"{AT}[0]: Invalid value: ")


def test_pod_resources_that_the_api_server_sets() -> None:
    old = "containers: [{name: a, image: a:1}], resources: {limits: {cpu: 2}, requests: {cpu: 1}}"
    assert found(old.replace(", requests: {cpu: 1}", ""), old) == []
    [only] = found(old.replace("{cpu: 2}", "{cpu: 3}"), old)
    assert only.startswith(f"spec.resources.limits.cpu: {CHANGED}")


def test_labels_with_names_of_amounts() -> None:
    old = "containers: [{name: a, image: a:1}], nodeSelector: {divisor: a, limits: b}"
    assert found(old, old) == []
    [only] = found(old.replace("divisor: a", "divisor: b"), old)
    assert only.startswith(f"spec.nodeSelector.divisor: {CHANGED}")
