# ruff: noqa: E501 - tables of manifests read better in rows
"""Which security contexts the API server rejects."""

from __future__ import annotations

import pytest
import yaml

from kpreempt.admission.validation.problems import Server
from kpreempt.admission.validation.security_contexts import check_container_context, check_os, check_pod_context


def of_container(context: str, *, is_host_user: bool = True) -> list[str]:
    container = {"securityContext": yaml.safe_load(f"{{{context}}}")}
    return [str(each) for each in check_container_context(container, is_host_user, ())]


def test_valid_contexts_of_containers() -> None:
    profiles = "seccompProfile: {type: Localhost, localhostProfile: a/b}, appArmorProfile: {type: Localhost, localhostProfile: a}"
    assert (
        of_container(f"runAsUser: 0, allowPrivilegeEscalation: false, capabilities: {{add: [NET_ADMIN]}}, {profiles}")
        == []
    )
    assert of_container("procMount: Unmasked, privileged: true", is_host_user=False) == []
    users = [r"NT AUTHORITY\SYSTEM", r"corp.example\user.name", "user name"]
    assert [of_container(f"windowsOptions: {{runAsUserName: '{user}'}}") for user in users] == [[], [], []]


CONTAINERS = {
    "runAsUser: -1": "securityContext.runAsUser: Invalid value: -1: must be between 0 and 2147483647, inclusive",
    "runAsGroup: 2147483648": "securityContext.runAsGroup: Invalid value: 2147483648",
    "procMount: All": 'securityContext.procMount: Unsupported value: "All"',
    "procMount: Unmasked": 'securityContext.procMount: Invalid value: "Unmasked": `hostUsers` must be false',
    "privileged: true, allowPrivilegeEscalation: false": "securityContext.allowPrivilegeEscalation: Invalid value: false: cannot set `allowPrivilegeEscalation` to false and `privileged` to true",
    "capabilities: {add: [CAP_SYS_ADMIN]}, allowPrivilegeEscalation: false": "securityContext.allowPrivilegeEscalation: Invalid value: false: cannot set `allowPrivilegeEscalation` to false and `capabilities.Add`",
    "seccompProfile: {}": "securityContext.seccompProfile.type: Required value",
    "seccompProfile: {type: Strict}": 'securityContext.seccompProfile.type: Unsupported value: "Strict"',
    "seccompProfile: {type: Localhost}": "securityContext.seccompProfile.localhostProfile: Required value",
    "seccompProfile: {type: Localhost, localhostProfile: /a}": 'securityContext.seccompProfile.localhostProfile: Invalid value: "/a": must be a relative path',
    "seccompProfile: {type: Unconfined, localhostProfile: a}": 'securityContext.seccompProfile.localhostProfile: Invalid value: "a": can only be set when',
    "appArmorProfile: {}": "securityContext.appArmorProfile.type: Required value",
    "appArmorProfile: {type: Strict}": 'securityContext.appArmorProfile.type: Unsupported value: "Strict"',
    "appArmorProfile: {type: Localhost, localhostProfile: ''}": "securityContext.appArmorProfile.localhostProfile: Required value",
    "appArmorProfile: {type: Localhost, localhostProfile: ' a'}": 'securityContext.appArmorProfile.localhostProfile: Invalid value: " a": must not be padded',
    f"appArmorProfile: {{type: Localhost, localhostProfile: {'a' * 4096}}}": "securityContext.appArmorProfile.localhostProfile: Too long: may not be more than 4095 bytes",
    "appArmorProfile: {type: RuntimeDefault, localhostProfile: a}": 'securityContext.appArmorProfile.localhostProfile: Invalid value: "a": can only be set when',
    "windowsOptions: {gmsaCredentialSpecName: A_b}": 'securityContext.windowsOptions.gmsaCredentialSpecName: Invalid value: "A_b"',
    "windowsOptions: {gmsaCredentialSpec: ''}": 'securityContext.windowsOptions.gmsaCredentialSpec: Invalid value: "": gmsaCredentialSpec cannot be an empty string',
    f"windowsOptions: {{gmsaCredentialSpec: {'a' * 65537}}}": "securityContext.windowsOptions.gmsaCredentialSpec: Invalid value",
    "windowsOptions: {runAsUserName: ''}": 'securityContext.windowsOptions.runAsUserName: Invalid value: "": runAsUserName cannot be an empty string',
    'windowsOptions: {runAsUserName: "a\\tb"}': 'securityContext.windowsOptions.runAsUserName: Invalid value: "a\\tb": runAsUserName cannot contain control characters',
    r"windowsOptions: {runAsUserName: 'a\b\c'}": r'securityContext.windowsOptions.runAsUserName: Invalid value: "a\\b\\c": runAsUserName cannot contain more than one backslash',
    f"windowsOptions: {{runAsUserName: '{'a' * 256}\\b'}}": "securityContext.windowsOptions.runAsUserName: Invalid value",
    r"windowsOptions: {runAsUserName: 'a*\b'}": "securityContext.windowsOptions.runAsUserName: Invalid value: \"a*\\\\b\": runAsUserName's Domain doesn't match",
    r"windowsOptions: {runAsUserName: 'a\'}": "securityContext.windowsOptions.runAsUserName: Invalid value: \"a\\\\\": runAsUserName's User cannot be empty",
    f"windowsOptions: {{runAsUserName: {'a' * 105}}}": "securityContext.windowsOptions.runAsUserName: Invalid value",
    "windowsOptions: {runAsUserName: '. .'}": "securityContext.windowsOptions.runAsUserName: Invalid value: \". .\": runAsUserName's User cannot contain only",
    "windowsOptions: {runAsUserName: 'a@b'}": "securityContext.windowsOptions.runAsUserName: Invalid value: \"a@b\": runAsUserName's User cannot contain the following",
}  # fmt: skip


@pytest.mark.parametrize(("context", "problem"), CONTAINERS.items())
def test_rejected_contexts_of_containers(context: str, problem: str) -> None:
    [only] = of_container(context)
    assert only.startswith(problem)


def of_pod(spec: str, minor: int = 36) -> list[str]:
    document = yaml.safe_load(f"{{{spec}}}")
    return [str(each) for each in (*check_pod_context(document, Server(minor), ()), *check_os(document, ()))]


HOST_PROCESS = "securityContext: {windowsOptions: {hostProcess: true}}"
VALID = [
    "containers: [{}]",
    "os: {name: linux}, hostNetwork: true, securityContext: {fsGroup: 0, supplementalGroups: [1], fsGroupChangePolicy: Always, sysctls: [{name: kernel.sem}, {name: a/b.c}]}",
    "securityContext: {supplementalGroupsPolicy: Strict, seLinuxChangePolicy: Recursive}",
    f"os: {{name: windows}}, hostNetwork: true, hostPID: false, {HOST_PROCESS}, containers: [{{}}, {{{HOST_PROCESS}}}]",
    "hostUsers: false, containers: [{volumeMounts: []}]",
]


@pytest.mark.parametrize("spec", VALID)
def test_valid_contexts_of_pods(spec: str) -> None:
    assert of_pod(spec) == []


PODS = {
    "securityContext: {fsGroup: -1}": "securityContext.fsGroup: Invalid value: -1",
    "securityContext: {supplementalGroups: [1, -1]}": "securityContext.supplementalGroups[1]: Invalid value: -1",
    "securityContext: {fsGroupChangePolicy: Never}": 'securityContext.fsGroupChangePolicy: Unsupported value: "Never"',
    "securityContext: {supplementalGroupsPolicy: ''}": 'securityContext.supplementalGroupsPolicy: Unsupported value: ""',
    "shareProcessNamespace: true, hostPID: true": "shareProcessNamespace: Invalid value: true: ShareProcessNamespace and HostPID cannot both be enabled",
    "securityContext: {sysctls: [{value: a}]}": "securityContext.sysctls[0].name: Required value",
    "securityContext: {sysctls: [{name: A}]}": 'securityContext.sysctls[0].name: Invalid value: "A": must have at most 253 characters',
    "securityContext: {sysctls: [{name: a}, {name: a}]}": 'securityContext.sysctls[1].name: Duplicate value: "a"',
    "hostNetwork: true, securityContext: {sysctls: [{name: net/ipv4.x}]}": "securityContext.sysctls[0].name: Invalid value: \"net/ipv4.x\": may not be specified when 'hostNetwork' is true",
    "hostIPC: true, securityContext: {sysctls: [{name: kernel.shmmax}]}": "securityContext.sysctls[0].name: Invalid value: \"kernel.shmmax\": may not be specified when 'hostIPC' is true",
    f"hostNetwork: true, containers: [{{{HOST_PROCESS}}}, {{}}]": 'Invalid value: "": If pod contains any hostProcess containers',
    f"containers: [{{{HOST_PROCESS}}}]": "hostNetwork: Invalid value: false: hostNetwork must be true",
    f"{HOST_PROCESS}, containers: [{{securityContext: {{windowsOptions: {{hostProcess: false}}}}}}]": "containers[0].securityContext.windowsOptions.hostProcess: Invalid value: false: pod hostProcess value must be identical if both are specified, was true",
    "hostUsers: false, hostNetwork: true": "hostNetwork: Forbidden: when `hostUsers` is false",
    "hostUsers: false, hostIPC: true": "hostIPC: Forbidden: when `hostUsers` is false",
    "hostUsers: false, containers: [{volumeDevices: [{}]}]": "containers[0].volumeDevices: Forbidden: when `hostUsers` is false",
    "os: {}": "os.name: Required value",
    "os: {name: plan9}": 'os: Unsupported value: "plan9": supported values: "linux", "windows"',
    "os: {name: linux}, securityContext: {windowsOptions: {}}": "securityContext.windowsOptions: Forbidden: windows options cannot be set for a linux pod",
    "os: {name: linux}, initContainers: [{securityContext: {windowsOptions: {}}}]": "initContainers[0].securityContext.windowsOptions: Forbidden",
    "os: {name: windows}, hostPID: true": "hostPID: Forbidden: cannot be set for a windows pod",
    "os: {name: windows}, hostUsers: true": "hostUsers: Forbidden: cannot be set for a windows pod",
    "os: {name: windows}, securityContext: {fsGroup: 1}": "securityContext.fsGroup: Forbidden: cannot be set for a windows pod",
    "os: {name: windows}, containers: [{securityContext: {privileged: false}}]": "containers[0].securityContext.privileged: Forbidden: cannot be set for a windows pod",
}  # fmt: skip


@pytest.mark.parametrize(("spec", "problem"), PODS.items())
def test_rejected_contexts_of_pods(spec: str, problem: str) -> None:
    [only] = of_pod(spec)
    assert only.removeprefix(": ").startswith(problem)


def test_versions() -> None:
    mount = "securityContext: {seLinuxChangePolicy: MountOption}"
    [only] = of_pod(mount, 36)
    assert (
        only == 'securityContext.seLinuxChangePolicy: Unsupported value: "MountOption": supported values: "Recursive"'
    )
    assert of_pod(mount, 37) == []
    assert of_pod("hostUsers: false, containers: [{volumeDevices: [{}]}]", 33) == []
