"""Which pods violate the Pod Security Standards of their namespace, and how the API server says it."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.admission.pod_security import Standard, check_labels, standards_of, violations_of

PREFIX = "pod-security.kubernetes.io/"
CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
CONTAINER = {"name": "c", "securityContext": CONTEXT}
SAFE = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/c"
SECCOMP = "seccomp.security.alpha.kubernetes.io/pod"


def pod(context: dict[str, Any] | None = None, annotations: dict[str, str] | None = None, **spec: Any) -> Any:
    """A pod that violates nothing, with changes to its spec and its security context."""
    whole = {"containers": [CONTAINER], "securityContext": {**SAFE, **(context or {})}, **spec}
    return {"metadata": {"name": "p", "annotations": annotations or {}}, "spec": whole}


def with_container(context: dict[str, Any] | None = None, **fields: Any) -> Any:
    """A pod that violates nothing, with changes to its container and the container's security context."""
    return pod(containers=[{**CONTAINER, "securityContext": {**CONTEXT, **(context or {})}, **fields}])


def violation(document: Any, level: str, minor: int = 36, version: str = "latest") -> str:
    """What is wrong with a pod, without the name of the standard."""
    found = violations_of(document, {f"{PREFIX}enforce": level, f"{PREFIX}enforce-version": version}, minor).enforce
    return found.removeprefix(f'violates PodSecurity "{level}:{version}": ')


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            with_container({"appArmorProfile": {"type": "Unconfined"}}),
            'forbidden AppArmor profile (container "c" must not set AppArmor profile type to "Unconfined")',
        ),
        (
            pod({"appArmorProfile": {"type": "Unconfined"}}, {APP_ARMOR: "unconfined", f"{APP_ARMOR}d": "x"}),
            "forbidden AppArmor profiles (pod and annotations must not set AppArmor profile type to "
            f'"Unconfined", "{APP_ARMOR}="unconfined"", "{APP_ARMOR}d="x"")',
        ),
        (
            pod(hostNetwork=True, hostPID=True, hostIPC=True),
            "host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)",
        ),
        (
            with_container(ports=[{"hostPort": 90}, {"hostPort": 100}, {"hostPort": 0}, {}]),
            'hostPort (container "c" uses hostPorts 100, 90)',
        ),
        (
            with_container(
                lifecycle={"preStop": {"httpGet": {"host": "h"}}}, livenessProbe={"tcpSocket": {"host": "g"}}
            ),
            'probe or lifecycle host (container "c" uses probe or lifecycle hosts "g", "h")',
        ),
        (
            with_container({"privileged": True}),
            'privileged (container "c" must not set securityContext.privileged=true)',
        ),
        (
            pod(
                {"seLinuxOptions": {"type": "spc_t", "user": "u", "role": "r"}},
                containers=[{**CONTAINER, "securityContext": {"seLinuxOptions": {"type": "a"}}}],
            ),
            'seLinuxOptions (pod and container "c" set forbidden securityContext.seLinuxOptions: '
            'types "a", "spc_t"; user may not be set; role may not be set)',
        ),
        (pod({"sysctls": [{"name": "kernel.msgmax"}, {"name": "a"}]}), "forbidden sysctls (kernel.msgmax, a)"),
        (
            pod({"windowsOptions": {"hostProcess": True}}),
            "hostProcess (pod must not set securityContext.windowsOptions.hostProcess=true)",
        ),
    ],
)
def test_checks_of_both_levels(document: Any, message: str) -> None:
    assert violation(document, "baseline") == message
    assert message in violation(document, "restricted")
    assert violation(document, "privileged") == ""


@pytest.mark.parametrize(
    ("document", "baseline", "restricted"),
    [
        (
            with_container({"capabilities": {"drop": ["ALL"], "add": ["SYS_ADMIN", "KILL"]}}),
            'non-default capabilities (container "c" must not include "SYS_ADMIN" in securityContext.capabilities.add)',
            'unrestricted capabilities (container "c" must not include "KILL", "SYS_ADMIN" in '
            "securityContext.capabilities.add)",
        ),
        (
            pod(volumes=[{"name": "a", "hostPath": {"path": "/"}}, {"name": "b"}, {"name": "s", "secret": {}}]),
            'hostPath volumes (volume "a")',
            'restricted volume types (volume "a" uses restricted volume type "hostPath")',
        ),
        (
            with_container({"procMount": "Unmasked"}),
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
            'procMount (container "c" must not set securityContext.procMount to "Unmasked")',
        ),
        (
            pod({"seccompProfile": {"type": "Unconfined"}}),
            'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
            'seccompProfile (pod must not set securityContext.seccompProfile.type to "Unconfined")',
        ),
    ],
)
def test_checks_that_restricted_replaces(document: Any, baseline: str, restricted: str) -> None:
    assert violation(document, "baseline") == baseline
    assert violation(document, "restricted") == restricted


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            with_container({"allowPrivilegeEscalation": None}),
            'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)',
        ),
        (
            with_container({"capabilities": {"add": ["KILL"]}}),
            'unrestricted capabilities (container "c" must set securityContext.capabilities.drop=["ALL"]; '
            'container "c" must not include "KILL" in securityContext.capabilities.add)',
        ),
        (
            pod(volumes=[{"name": "a", "nfs": {}}, {"name": "b", "rbd": {}}, {"name": "c", "nfs": {}}]),
            'restricted volume types (volumes "a", "b", "c" use restricted volume types "nfs", "rbd")',
        ),
        (
            pod({"runAsNonRoot": False}),
            "runAsNonRoot != true (pod must not set securityContext.runAsNonRoot=false)",
        ),
        (
            pod({"runAsNonRoot": None}),
            'runAsNonRoot != true (pod or container "c" must set securityContext.runAsNonRoot=true)',
        ),
        (
            with_container({"runAsNonRoot": False}),
            'runAsNonRoot != true (container "c" must not set securityContext.runAsNonRoot=false)',
        ),
        (pod({"runAsUser": 0}), "runAsUser=0 (pod must not set runAsUser=0)"),
        (
            pod({"seccompProfile": None}),
            'seccompProfile (pod or container "c" must set securityContext.seccompProfile.type to "RuntimeDefault" or '
            '"Localhost")',
        ),
    ],
)
def test_checks_of_restricted_alone(document: Any, message: str) -> None:
    assert violation(document, "restricted") == message
    assert violation(document, "baseline") == ""


@pytest.mark.parametrize(
    "document",
    [
        pod(),
        pod({"appArmorProfile": {"type": "Localhost"}}, {APP_ARMOR: "localhost/a", f"{APP_ARMOR}d": "runtime/default"}),
        pod({"seLinuxOptions": {"type": "container_kvm_t"}, "runAsUser": 1, "seccompProfile": {"type": "Localhost"}}),
        pod({"sysctls": [{"name": "kernel.shm_rmid_forced"}]}),
        with_container({"procMount": "Default", "privileged": False, "runAsNonRoot": True}),
        with_container({"capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]}}),
        with_container(livenessProbe={"httpGet": {"host": ""}}, ports=[{"containerPort": 80}]),
        pod(volumes=[{"name": each, each: {}} for each in ("emptyDir", "csi", "image", "ephemeral", "projected")]),
        pod({"runAsNonRoot": None}, containers=[{"name": "c", "securityContext": {**SAFE, **CONTEXT}}]),
    ],
)
def test_pods_that_restricted_allows(document: Any) -> None:
    assert violation(document, "restricted") == ""


def test_all_kinds_of_containers_are_checked_init_containers_first() -> None:
    container = {"name": "main", "securityContext": {"privileged": True}}
    document = pod(
        containers=[container],
        initContainers=[{**container, "name": "init"}],
        ephemeralContainers=[{**container, "name": "debug"}],
    )
    names = '"init", "main", "debug"'
    assert violation(document, "baseline") == (
        f"privileged (containers {names} must not set securityContext.privileged=true)"
    )


@pytest.mark.parametrize(
    ("document", "level", "version", "minor", "is_allowed"),
    [
        # The latest version of an older server, and versions that it does not know.
        (with_container(livenessProbe={"httpGet": {"host": "h"}}), "baseline", "latest", 33, True),
        (with_container(livenessProbe={"httpGet": {"host": "h"}}), "baseline", "v1.99", 33, True),
        (with_container(livenessProbe={"httpGet": {"host": "h"}}), "baseline", "v1.33", 36, True),
        (with_container(livenessProbe={"httpGet": {"host": "h"}}), "baseline", "v1.99", 34, False),
        (pod({"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}), "baseline", "v1.31", 36, False),
        (pod({"sysctls": [{"name": "net.ipv4.tcp_rmem"}]}), "baseline", "latest", 32, True),
        (pod({"sysctls": [{"name": "net.ipv4.tcp_fin_timeout"}]}), "baseline", "v1.28", 36, False),
        (pod({"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]}), "baseline", "latest", 36, False),
        (pod({"sysctls": [{"name": "net.ipv4.tcp_notsent_lowat"}]}), "baseline", "latest", 37, True),
        (pod({"seLinuxOptions": {"type": "container_engine_t"}}), "baseline", "v1.30", 36, False),
        (pod({"seLinuxOptions": {"type": "container_engine_t"}}), "baseline", "v1.31", 36, True),
        (with_container({"privileged": True}), "baseline", "latest", 23, False),
        (with_container({"privileged": True}), "baseline", "latest", 22, True),
        # User namespaces.
        (pod({"runAsUser": 0, "runAsNonRoot": False}, hostUsers=False), "restricted", "latest", 36, True),
        (pod({"runAsUser": 0}, hostUsers=True), "restricted", "latest", 36, False),
        (pod({"runAsUser": 0}, hostUsers=False), "restricted", "v1.34", 36, False),
        (pod({"runAsUser": 0}, hostUsers=False), "restricted", "latest", 34, False),
        ({**with_container({"procMount": "Unmasked"})}, "baseline", "latest", 34, False),
        # The field is dropped.
        ({**with_container({"procMount": "Unmasked"})}, "restricted", "latest", 32, True),
        (pod({"appArmorProfile": {"type": "Unconfined"}}), "restricted", "latest", 29, True),
        # Windows.
        (pod({"seccompProfile": None}, os={"name": "windows"}), "restricted", "v1.25", 36, True),
        (pod({"seccompProfile": None}, os={"name": "windows"}), "restricted", "v1.24", 36, False),
        (with_container({"allowPrivilegeEscalation": True}), "restricted", "v1.7", 36, True),
        (with_container({"capabilities": {}}), "restricted", "v1.21", 36, True),
        (pod({"runAsUser": 0}), "restricted", "v1.22", 36, True),
        # Annotations for seccomp.
        (pod({"seccompProfile": None}, {SECCOMP: "unconfined"}), "baseline", "v1.18", 36, False),
        (pod({"seccompProfile": {"type": "Unconfined"}}, {SECCOMP: "docker/default"}), "restricted", "v1.18", 36, True),
        (pod(annotations={SECCOMP: "unconfined"}), "baseline", "v1.19", 36, True),
    ],
)
def test_versions(document: Any, level: str, version: str, minor: int, is_allowed: bool) -> None:
    assert (violation(document, level, minor, version) == "") == is_allowed


def test_unmasked_proc_is_allowed_in_a_user_namespace_by_baseline_alone() -> None:
    document = pod(hostUsers=False, containers=[{**CONTAINER, "securityContext": {"procMount": "Unmasked"}}])
    assert violation(document, "baseline") == ""
    assert 'procMount (container "c"' in violation(document, "restricted")


def test_several_violations_are_in_the_order_of_the_checks() -> None:
    document = pod({"runAsNonRoot": None, "seccompProfile": None}, containers=[{"name": "c"}], hostPID=True)
    assert violation(document, "restricted") == (
        'host namespaces (hostPID=true), allowPrivilegeEscalation != false (container "c" must set '
        'securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container "c" must set '
        'securityContext.capabilities.drop=["ALL"]), runAsNonRoot != true (pod or container "c" must set '
        'securityContext.runAsNonRoot=true), seccompProfile (pod or container "c" must set '
        'securityContext.seccompProfile.type to "RuntimeDefault" or "Localhost")'
    )


@pytest.mark.parametrize(
    ("labels", "enforce", "warn"),
    [
        ({}, "privileged:latest", "privileged:latest"),
        ({"enforce": "baseline"}, "baseline:latest", "baseline:latest"),
        ({"enforce": "restricted", "enforce-version": "v1.24"}, "restricted:v1.24", "restricted:v1.24"),
        ({"enforce": "baseline", "warn-version": "v1.30"}, "baseline:latest", "baseline:v1.30"),
        ({"enforce": "baseline", "warn": "restricted"}, "baseline:latest", "restricted:latest"),
        ({"enforce": "restricted", "warn": "privileged"}, "restricted:latest", "privileged:latest"),
        ({"enforce": "strict", "enforce-version": "1.24"}, "restricted:latest", "privileged:latest"),
        ({"warn": "strict", "audit": "restricted"}, "privileged:latest", "privileged:latest"),
    ],
)
def test_standards_of_labels(labels: dict[str, str], enforce: str, warn: str) -> None:
    found = standards_of({f"{PREFIX}{key}": value for key, value in labels.items()})
    assert [*map(str, found)] == [enforce, warn]
    assert isinstance(found.enforce, Standard)


def test_warnings() -> None:
    labels = {f"{PREFIX}enforce": "baseline", f"{PREFIX}warn": "restricted"}
    found = violations_of(pod({"runAsUser": 0}), labels, 36)
    assert found == ("", 'would violate PodSecurity "restricted:latest": runAsUser=0 (pod must not set runAsUser=0)')


@pytest.mark.parametrize(
    ("label", "value", "message"),
    [
        ("enforce", "strict", 'Invalid value: "strict": must be one of privileged, baseline, restricted'),
        ("audit", "", 'Invalid value: "": must be one of privileged, baseline, restricted'),
        ("warn-version", "1.30", 'Invalid value: "1.30": must be "latest" or "v1.x"'),
        ("enforce-version", "v1.030", 'Invalid value: "v1.030": must be "latest" or "v1.x"'),
    ],
)
def test_labels_are_validated(label: str, value: str, message: str) -> None:
    (problem,) = check_labels({f"{PREFIX}{label}": value})
    assert str(problem) == f"metadata.labels[{PREFIX}{label}]: {message}"


def test_valid_labels() -> None:
    labels = {"enforce": "restricted", "enforce-version": "v1.0", "audit": "baseline", "warn-version": "latest"}
    assert not list(check_labels({f"{PREFIX}{key}": value for key, value in labels.items()} | {"other": "1"}))


@pytest.mark.parametrize("spec", [{"containers": None}, {"containers": [None, 3]}, {"securityContext": None}, {}])
def test_documents_that_lack_everything(spec: Any) -> None:
    assert isinstance(violation({"spec": spec}, "restricted"), str)
