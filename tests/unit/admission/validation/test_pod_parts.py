# ruff: noqa: E501 - tables of manifests read better in rows
"""Which fields of pods the API server of a version drops, and which problems an update adds."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation.pod_parts import new_problems, without_disabled_fields
from kpreempt.admission.validation.problems import Problem, Server
from kpreempt.model.documents import Path


def kept(spec: str, minor: int, old: str = "{}") -> Any:
    return without_disabled_fields(yaml.safe_load(spec), yaml.safe_load(old), Server(minor))


FIELDS = [
    ("{hostUsers: false}", 33),
    ("{securityContext: {supplementalGroupsPolicy: Strict}}", 33),
    ("{securityContext: {seLinuxChangePolicy: Recursive}}", 33),
    ("{resources: {limits: {cpu: 1}}}", 34),
    ("{resourceClaims: [{name: a}]}", 34),
    ("{hostnameOverride: a}", 35),
    ("{initContainers: [{resizePolicy: [{resourceName: cpu}]}]}", 33),
    ("{containers: [{volumeMounts: [{recursiveReadOnly: Enabled}]}]}", 31),
    ("{containers: [{resources: {claims: [{name: a}]}}]}", 34),
    ("{containers: [{env: [{valueFrom: {fileKeyRef: {key: a}}}]}]}", 35),
    ("{ephemeralContainers: [{restartPolicyRules: [{action: Restart}]}]}", 35),
    ("{containers: [{lifecycle: {preStop: {sleep: {seconds: 1}}}}]}", 30),
]


@pytest.mark.parametrize(("spec", "minor"), FIELDS)
def test_fields_are_dropped_before_their_gate_is_on(spec: str, minor: int) -> None:
    given = yaml.safe_load(spec)
    assert kept(spec, minor) == given
    assert kept(spec, minor - 1) != given
    assert kept(spec, minor - 1, spec) == given, "the old object has the field"


def test_the_given_spec_does_not_change() -> None:
    spec = {"hostUsers": False, "containers": [{"securityContext": {"procMount": "Unmasked"}}]}
    result = without_disabled_fields(spec, None, Server(32))
    assert result == {"containers": [{"securityContext": {"procMount": "Default"}}]}
    assert spec == {"hostUsers": False, "containers": [{"securityContext": {"procMount": "Unmasked"}}]}


VALUES = [
    ("{containers: [{lifecycle: {stopSignal: SIGTERM}}]}", 38, "{containers: [{}]}"),
    ("{containers: [{lifecycle: {stopSignal: SIGTERM, preStop: {}}}]}", 38, "{containers: [{lifecycle: {preStop: {}}}]}"),
    ("{initContainers: [{lifecycle: {}}]}", 38, "{initContainers: [{lifecycle: {}}]}"),
    ("{schedulingGroup: {podGroupName: a}}", 38, "{}"),
    ("{containers: [{restartPolicy: Always}], initContainers: [{restartPolicy: Never}, {restartPolicy: Always}]}", 34, "{containers: [{}], initContainers: [{}, {restartPolicy: Always}]}"),
    ("{containers: [{restartPolicy: Always}]}", 33, "{containers: [{restartPolicy: Always}]}"),
    ("{volumes: [{name: a, image: {}}, {name: b}], containers: [{volumeMounts: [{name: a}, {name: b}]}]}", 34, "{volumes: [{name: b}], containers: [{volumeMounts: [{name: b}]}]}"),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "minor", "result"), VALUES)
def test_what_else_is_dropped(spec: str, minor: int, result: str) -> None:
    assert kept(spec, minor) == yaml.safe_load(result)


def test_image_volumes_of_the_old_spec_stay() -> None:
    spec = "{volumes: [{name: a, image: {}}]}"
    assert kept(spec, 34, spec) == yaml.safe_load(spec)


def test_new_problems() -> None:
    def problems(*paths: Path) -> list[Problem]:
        return [Problem(path, "Required value") for path in paths]

    old = problems(("spec", "containers", 0, "image"), ("spec", "volumes", 3))
    new = problems(("spec", "initContainers", 1, "image"), ("spec", "volumes", 5), ("spec", "nodeName"))
    assert list(new_problems(new, old)) == problems(("spec", "nodeName"))
