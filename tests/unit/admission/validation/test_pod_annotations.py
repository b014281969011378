# ruff: noqa: E501 - tables of manifests read better in rows
"""Which annotations of pods the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation.pod_annotations import (
    check_annotation_updates,
    check_pod_annotations,
    check_profiles_match,
)
from kpreempt.admission.validation.problems import Server

COST = "controller.kubernetes.io/pod-deletion-cost"
TOLERATIONS = "scheduler.alpha.kubernetes.io/tolerations"
MIRROR = "kubernetes.io/config.mirror"
SECCOMP_POD = "seccomp.security.alpha.kubernetes.io/pod"
SECCOMP = "container.seccomp.security.alpha.kubernetes.io/a"
APP_ARMOR = "container.apparmor.security.beta.kubernetes.io/a"
SPEC: dict[str, Any] = {"containers": [{"name": "a"}]}

VALUES = [
    (COST, "0", None),
    (COST, "-10", None),
    (COST, "+1", "must be a 32bit integer"),
    (COST, "007", "must be a 32bit integer"),
    (COST, "2147483648", "must be a 32bit integer"),
    (COST, "", "must be a 32bit integer"),
    (TOLERATIONS, "", None),
    (TOLERATIONS, '[{"key": "a"}]', None),
    (TOLERATIONS, "x", "is not JSON"),
    (TOLERATIONS, "{}", "is not a list of tolerations"),
    (SECCOMP_POD, "runtime/default", None),
    (SECCOMP_POD, "localhost/a/b", None),
    (SECCOMP_POD, "default", "must be a valid seccomp profile"),
    (SECCOMP, "localhost//a", "must be a relative path"),
    (SECCOMP, "localhost/../a", "must not contain '..'"),
    (APP_ARMOR, "unconfined", None),
    (APP_ARMOR, "localhost/x", None),
    (APP_ARMOR, "strict", 'invalid AppArmor profile name: "strict"'),
    (APP_ARMOR[:-1] + "b", "unconfined", "container not found"),
    (MIRROR, "x", "must set spec.nodeName if mirror pod annotation is set"),
    ("example.com/a", "x", None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "problem"), VALUES)
def test_values(key: str, value: str, problem: str | None) -> None:
    result = list(check_pod_annotations({key: value}, SPEC, ("annotations",)))
    assert [each.path for each in result] == ([("annotations", key)] if problem else [])
    assert all(each.message.endswith(f": {problem}") for each in result)


def test_mirror_pods_have_a_node() -> None:
    assert list(check_pod_annotations({MIRROR: "x"}, {**SPEC, "nodeName": "n"}, ())) == []


UPDATES = [
    ({APP_ARMOR: "a"}, {APP_ARMOR: "a"}, []),
    ({APP_ARMOR: "a"}, {}, ["may not add AppArmor annotations"]),
    ({}, {APP_ARMOR: "a"}, ["may not remove or update AppArmor annotations"]),
    ({MIRROR: "b"}, {MIRROR: "a"}, ["may not remove or update mirror pod annotation"]),
    ({COST: "1", "a": "b"}, {COST: "2"}, []),
]  # fmt: skip


@pytest.mark.parametrize(("new", "old", "problems"), UPDATES)
def test_updates(new: dict[str, str], old: dict[str, str], problems: list[str]) -> None:
    result = [each.message for each in check_annotation_updates(new, old, ())]
    assert result == [f"Forbidden: {each}" for each in problems]


POD_SECCOMP = "securityContext: {seccompProfile: {type: RuntimeDefault}}, containers: [{name: a}]"
LOCAL_SECCOMP = "containers: [{name: a, securityContext: {seccompProfile: {type: Localhost, localhostProfile: x}}}]"
POD_APP_ARMOR = "securityContext: {appArmorProfile: {type: RuntimeDefault}}, containers: [{name: a}]"
LOCAL_APP_ARMOR = "containers: [{name: a, securityContext: {appArmorProfile: {type: Localhost, localhostProfile: x}}}]"
PROFILES = [
    (SECCOMP_POD, "docker/default", POD_SECCOMP, None),
    (SECCOMP_POD, "unconfined", POD_SECCOMP, "securityContext.seccompProfile.type: Forbidden: seccomp type in annotation and field must match"),
    (SECCOMP, "localhost/x", LOCAL_SECCOMP, None),
    (SECCOMP, "localhost/y", LOCAL_SECCOMP, "containers[0].securityContext.seccompProfile.localhostProfile: Forbidden: seccomp profile in annotation"),
    (SECCOMP, "unconfined", LOCAL_SECCOMP, "containers[0].securityContext.seccompProfile.type: Forbidden"),
    (SECCOMP, "unconfined", POD_SECCOMP, None),
    (APP_ARMOR, "runtime/default", POD_APP_ARMOR, None),
    (APP_ARMOR, "unconfined", POD_APP_ARMOR, "containers[0].securityContext.appArmorProfile.type: Forbidden: apparmor type in annotation and field must match"),
    (APP_ARMOR, "localhost/x", LOCAL_APP_ARMOR, None),
    (APP_ARMOR, "localhost/y", LOCAL_APP_ARMOR, "containers[0].securityContext.appArmorProfile.localhostProfile: Forbidden"),
    (APP_ARMOR, "unconfined", f"os: {{name: windows}}, {LOCAL_APP_ARMOR}", None),
]  # fmt: skip


@pytest.mark.parametrize(("key", "value", "spec", "problem"), PROFILES)
def test_annotations_and_fields_agree(key: str, value: str, spec: str, problem: str | None) -> None:
    result = [str(each) for each in check_profiles_match({key: value}, yaml.safe_load(f"{{{spec}}}"), Server(36), ())]
    assert len(result) == (problem is not None)
    assert all(each.startswith(problem or "") for each in result)


@pytest.mark.parametrize(
    ("value", "count"), [("unconfined", 0), ("localhost/x", 0), ("localhost/", 1), ("localhost/ x", 1)]
)
def test_annotations_of_new_pods_come_before_the_profile_of_the_pod(value: str, count: int) -> None:
    spec = yaml.safe_load(f"{{{POD_APP_ARMOR}}}")
    assert len(list(check_profiles_match({APP_ARMOR: value}, spec, Server(36), (), is_pod=True))) == count


def test_app_armor_fields_by_version() -> None:
    spec = yaml.safe_load(f"{{{POD_APP_ARMOR}}}")
    assert list(check_profiles_match({APP_ARMOR: "unconfined"}, spec, Server(29), ())) == []
