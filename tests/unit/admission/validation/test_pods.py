# ruff: noqa: E501 - tables of manifests read better in rows
"""Which pods and templates the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.defaults import template_with_defaults
from kpreempt.admission.validation import pods
from kpreempt.admission.validation.problems import Server

CONTAINERS = "containers: [{name: a, image: a:1}]"
ADMIN = "initContainers: [{name: i, image: i, securityContext: {%scapabilities: {add: [CAP_SYS_ADMIN]}}}]"


def pod(spec: str = CONTAINERS, metadata: str = "name: p, namespace: n") -> dict[str, Any]:
    text = f"{{apiVersion: v1, kind: Pod, metadata: {{{metadata}}}, spec: {{{spec}}}}}"
    return template_with_defaults(yaml.safe_load(text), is_pod=True)


def found(new: dict[str, Any], old: dict[str, Any] | None = None, minor: int = 36) -> list[str]:
    return [str(each) for each in pods.check_pod(new, old, Server(minor))]


def of_template(spec: str, metadata: str = "labels: {a: b}", minor: int = 36) -> list[str]:
    template = template_with_defaults(yaml.safe_load(f"{{metadata: {{{metadata}}}, spec: {{{spec}}}}}"))
    return [str(each) for each in pods.check_template(template, Server(minor), ("spec", "template"))]


VALID = [
    CONTAINERS,
    f"{CONTAINERS}, serviceAccountName: a.b, nodeName: n.x, hostname: h, subdomain: s, priorityClassName: p.q, runtimeClassName: r, schedulerName: '*'",
    f"{CONTAINERS}, activeDeadlineSeconds: 1, terminationGracePeriodSeconds: 0, preemptionPolicy: Never, restartPolicy: OnFailure, overhead: {{cpu: 10m}}",
    f"{CONTAINERS}, readinessGates: [{{conditionType: a.io/b}}], imagePullSecrets: [{{}}], hostnameOverride: a.b",
    f"{CONTAINERS}, resources: {{limits: {{cpu: 1}}}}",
    "hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80}]}]",
]


@pytest.mark.parametrize("minor", range(29, 39))
@pytest.mark.parametrize("spec", VALID)
def test_valid_pods(spec: str, minor: int) -> None:
    assert found(pod(spec), None, minor) == []
    assert found(pod(spec), pod(spec), minor) == []
    assert of_template(spec, minor=minor) == []


REJECTED = {
    "serviceAccountName: A": 'spec.serviceAccountName: Invalid value: "A": a lowercase RFC 1123 subdomain',
    "nodeName: a_b": 'spec.nodeName: Invalid value: "a_b"',
    "hostname: a.b": 'spec.hostname: Invalid value: "a.b": a lowercase RFC 1123 label',
    "subdomain: -a": 'spec.subdomain: Invalid value: "-a"',
    "priorityClassName: A": 'spec.priorityClassName: Invalid value: "A"',
    "runtimeClassName: ''": 'spec.runtimeClassName: Invalid value: ""',
    "restartPolicy: Sometimes": 'spec.restartPolicy: Unsupported value: "Sometimes": supported values: "Always", "Never", "OnFailure"',
    "preemptionPolicy: ''": "spec.preemptionPolicy: Required value",
    "preemptionPolicy: Always": 'spec.preemptionPolicy: Unsupported value: "Always"',
    "activeDeadlineSeconds: 0": "spec.activeDeadlineSeconds: Invalid value: 0: must be between 1 and 2147483647, inclusive",
    "readinessGates: [{}]": 'spec.readinessGates[0].conditionType: Invalid value: "": name part must be non-empty',
    "overhead: {cpu: -1}": 'spec.overhead.cpu: Invalid value: "-1": must be greater than or equal to 0',
    "overhead: {foo: 1}": 'spec.overhead.foo: Invalid value: "foo": must be a standard resource type',
    "hostnameOverride: A": 'spec.hostnameOverride: Invalid value: "A"',
    f"hostnameOverride: {'a.' * 33}a": "spec.hostnameOverride: Too long: may not be more than 64 bytes",
    "hostnameOverride: a, setHostnameAsFQDN: true": "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
    "securityContext: {fsGroup: -1}": "spec.securityContext.fsGroup: Invalid value: -1",
    "os: {name: plan9}": 'spec.os: Unsupported value: "plan9"',
    "resources: {claims: [{name: a}]}": "spec.resources.claims: Forbidden",
}  # fmt: skip


@pytest.mark.parametrize(("fields", "problem"), REJECTED.items())
def test_rejected_fields(fields: str, problem: str) -> None:
    spec = f"{CONTAINERS}, {fields}"
    [only] = found(pod(spec))
    assert only.startswith(problem)
    [of_templates] = of_template(spec)
    assert of_templates.startswith(f"spec.template.{problem}")
    assert found(pod(spec), pod(spec)) == [], "the old pod has the problem"


def test_fields_that_a_version_drops() -> None:
    assert found(pod(f"{CONTAINERS}, hostnameOverride: A"), None, 34) == []
    old = pod()
    assert found(pod(f"{CONTAINERS}, hostUsers: false"), old, 32) == []
    [only] = found(pod(f"{CONTAINERS}, hostUsers: false"), old, 33)
    assert only.startswith("spec.hostUsers: Forbidden: pod updates may not change fields")


POD_ONLY = {
    "containers: [{name: a, image: ' a'}]": 'spec.containers[0].image: Invalid value: " a": must not have leading or trailing whitespace',
    f"{CONTAINERS}, initContainers: [{{name: i, image: 'a '}}]": 'spec.initContainers[0].image: Invalid value: "a "',
    f"{CONTAINERS}, nodeName: n, schedulingGates: [{{name: g}}]": "spec.nodeName: Forbidden: cannot be set until all schedulingGates have been cleared",
}  # fmt: skip


@pytest.mark.parametrize(("spec", "problem"), POD_ONLY.items())
def test_what_only_pods_may_not_have(spec: str, problem: str) -> None:
    [only] = found(pod(spec))
    assert only.startswith(problem)
    assert of_template(spec) == []


def test_ephemeral_containers() -> None:
    spec = f"{CONTAINERS}, ephemeralContainers: [{{name: e, image: e}}]"
    assert found(pod(spec)) == ["spec.ephemeralContainers: Forbidden: cannot be set on create"]
    assert found(pod(spec), pod(spec)) == []
    at = "spec.template.spec.ephemeralContainers"
    assert of_template(spec) == [f"{at}: Forbidden: ephemeral containers not allowed in pod template"]


def test_host_ports() -> None:
    port = "hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80, hostPort: %d}]}]"
    problem = (
        "spec.containers[0].ports[0].hostPort: Invalid value: 81: must match `containerPort` when `hostNetwork` is true"
    )
    assert found(pod(port % 81)) == [problem]
    assert of_template(port % 81) == [f"spec.template.{problem}"]
    # The API server sets missing host ports only in pods.
    spec = "hostNetwork: true, containers: [{name: a, image: a, ports: [{containerPort: 80}]}, {name: b, image: b, ports: [{containerPort: 80}]}]"
    assert found(pod(spec)) == ['spec.containers[1].ports[0].hostPort: Duplicate value: "TCP//80"']
    assert of_template(spec) == []


def test_negative_grace_period_of_pods_is_one_second() -> None:
    hook = "containers: [{name: a, image: a, lifecycle: {preStop: {sleep: {seconds: 1}}}}], terminationGracePeriodSeconds: -1"
    assert found(pod(hook)) == []
    [only] = of_template(hook)
    assert only.startswith(
        "spec.template.spec.containers[0].lifecycle.preStop.sleep: Invalid value: 1: must be non-negative"
    )


def test_metadata() -> None:
    [name] = found(pod(metadata="name: A"))
    assert name.startswith('metadata.name: Invalid value: "A"')
    cost = "annotations: {controller.kubernetes.io/pod-deletion-cost: x}"
    [annotation] = found(pod(metadata=f"name: p, {cost}"))
    assert annotation.startswith("metadata.annotations[controller.kubernetes.io/pod-deletion-cost]: Invalid value")
    assert found(pod(metadata=f"name: p, {cost}"), pod(metadata=f"name: p, {cost}")) == []
    for key, problem in (("labels: {a: '-'}", "metadata.labels.a"), (cost, "metadata.annotations[controller")):
        [only] = of_template(CONTAINERS, key)
        assert only.startswith(f"spec.template.{problem}")


def test_finalizers() -> None:
    assert found(pod(metadata="name: p, finalizers: [a.io/b, kubernetes]")) == []
    [only] = found(pod(metadata="name: p, finalizers: [orphan, a]"))
    assert only.startswith('metadata.finalizers[1]: Invalid value: "a": name is neither a standard finalizer name')


def test_annotations_with_profiles() -> None:
    spec = "containers: [{name: a, image: a, securityContext: {appArmorProfile: {type: Unconfined}}}]"
    annotations = "annotations: {container.apparmor.security.beta.kubernetes.io/a: runtime/default}"
    at = "spec.containers[0].securityContext.appArmorProfile.type: Forbidden"
    [only] = found(pod(spec, f"name: p, {annotations}"))
    assert only.startswith(at)
    [of_templates] = of_template(spec, annotations)
    assert of_templates.startswith(f"spec.template.{at}")
    [update] = found(pod(spec, f"name: p, {annotations}"), pod(spec))
    assert update.endswith("may not add AppArmor annotations")


TOLERATED = [
    ("securityContext: {seLinuxChangePolicy: Recursive}", "securityContext: {seLinuxChangePolicy: MountOption}", 36, 0),
    ("dnsPolicy: Default", "securityContext: {seLinuxChangePolicy: MountOption}", 36, 1),
    (ADMIN % "", ADMIN % "allowPrivilegeEscalation: false, ", 37, 0),
    (ADMIN % "", ADMIN % "allowPrivilegeEscalation: false, ", 36, 1),
    ("resources: {limits: {cpu: 1}}", "resources: {limits: {cpu: 1}, requests: {cpu: 2}}", 33, 0),
    ("resources: {limits: {cpu: 1}}", "resources: {limits: {cpu: 1}, requests: {cpu: 2}}", 34, 1),
]


@pytest.mark.parametrize(("old", "new", "minor", "count"), TOLERATED)
def test_what_the_old_template_allows(old: str, new: str, minor: int, count: int) -> None:
    after, before = (yaml.safe_load(f"{{spec: {{{CONTAINERS}, {each}}}}}") for each in (new, old))
    assert len(list(pods.check_template(after, Server(minor), (), old=before))) == count
