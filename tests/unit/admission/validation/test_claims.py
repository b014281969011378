# ruff: noqa: E501 - tables of manifests read better in rows
"""Which PersistentVolumeClaims the API server rejects, new ones and updates."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.claims import check_claim, check_claim_spec

SIZE = "resources: {requests: {storage: 10Gi}}"
MODES = "accessModes: [ReadWriteOnce]"
BASE = f"{MODES}, {SIZE}"
BOUND = "phase: Bound, capacity: {storage: 10Gi}"


def claim(spec: str, status: str = "", annotations: str = "") -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load(
        f"{{metadata: {{name: data, annotations: {{{annotations}}}}}, spec: {{{spec}}}, status: {{{status}}}}}"
    )
    return document


def found(spec: str, old: dict[str, Any] | None = None, *, minor: int = 36, annotations: str = "") -> list[str]:
    return [str(each) for each in check_claim(claim(spec, annotations=annotations), old, Server(minor))]


@pytest.mark.parametrize("minor", range(29, 39))
@pytest.mark.parametrize(
    "spec",
    [
        BASE,
        f"{SIZE}, accessModes: [ReadWriteOncePod], storageClassName: '', volumeMode: Block, volumeAttributesClassName: gold",
        f"{BASE}, dataSource: {{apiGroup: snapshot.storage.k8s.io, kind: VolumeSnapshot, name: a}}",
        f"{BASE}, dataSourceRef: {{apiGroup: example.com, kind: Any, name: a}}, selector: {{matchLabels: {{a: b}}}}",
    ],
)
def test_valid_claims(spec: str, minor: int) -> None:
    assert found(spec, minor=minor) == []
    assert found(spec, claim(spec), minor=minor) == []


REJECTED = {
    SIZE: "spec.accessModes: Required value: at least 1 access mode is required",
    f"{SIZE}, accessModes: [RWO]": 'spec.accessModes[0]: Unsupported value: "RWO"',
    f"{SIZE}, accessModes: [ReadWriteOncePod, ReadWriteOnce]": "spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes",
    MODES: "spec.resources.requests.storage: Required value",
    f"{MODES}, resources: {{requests: {{storage: 0}}}}": "spec.resources.requests.storage: Invalid value: 0: must be greater than zero",
    f"{BASE}, storageClassName: A": 'spec.storageClassName: Invalid value: "A": a lowercase RFC 1123 subdomain',
    f"{BASE}, volumeAttributesClassName: A": 'spec.volumeAttributesClassName: Invalid value: "A"',
    f"{BASE}, volumeMode: File": 'spec.volumeMode: Unsupported value: "File"',
    f"{BASE}, selector: {{matchLabels: {{a: -}}}}": 'spec.selector.matchLabels.a: Invalid value: "-"',
    f"{BASE}, dataSource: {{kind: PersistentVolumeClaim, name: a}}, dataSourceRef: {{kind: PersistentVolumeClaim, name: b}}": "must match dataSourceRef",
}  # fmt: skip


@pytest.mark.parametrize("spec", REJECTED)
def test_rejected_claims(spec: str) -> None:
    assert [REJECTED[spec] in each for each in found(spec)] == [True]


@pytest.mark.parametrize(
    ("reference", "problem"),
    [
        ("{kind: PersistentVolumeClaim}", "spec.dataSourceRef.name: Required value"),
        ("{apiGroup: a.b, name: a}", "spec.dataSourceRef.kind: Required value"),
        ("{kind: Any, name: a}", "spec.dataSourceRef: Invalid value: \"Any\": must be 'PersistentVolumeClaim'"),
        ("{apiGroup: A, kind: Any, name: a}", 'spec.dataSourceRef.apiGroup: Invalid value: "A"'),
    ],
)
def test_rejected_sources(reference: str, problem: str) -> None:
    assert any(each.startswith(problem) for each in found(f"{BASE}, dataSourceRef: {reference}"))


def test_a_source_in_another_namespace_may_stay() -> None:
    spec = f"{BASE}, dataSourceRef: {{apiGroup: a.b, kind: Any, name: a, namespace: %s}}"
    assert found(spec % "other", claim(spec % "other")) == []
    assert "spec.dataSourceRef.namespace: Invalid value" in "".join(found(spec % "A", claim(spec % "A")))
    both = f"{spec % 'other'}, dataSource: {{apiGroup: a.b, kind: Any, name: a}}"
    assert "may not be specified when dataSourceRef.namespace is specified" in "".join(
        found(both, claim(spec % "other"))
    )


@pytest.mark.parametrize("source", ["dataSource: {kind: Any}", "dataSourceRef: {kind: '', namespace: other}"])
def test_sources_that_are_dropped(source: str) -> None:
    assert found(f"{BASE}, {source}") == []
    assert found(f"{BASE}, {source}", claim(f"{BASE}, {source}")) != []


def test_an_invalid_selector_may_stay() -> None:
    spec = f"{BASE}, selector: {{matchLabels: {{a: -}}}}"
    assert found(spec, claim(spec)) == []


@pytest.mark.parametrize(
    ("size", "status", "minor", "problem"),
    [
        ("20Gi", BOUND, 36, ""),
        ("10240Mi", "phase: Pending", 36, ""),
        ("20Gi", "phase: Pending", 36, "spec.resources: Forbidden: spec is immutable after creation"),
        ("5Gi", BOUND, 36, "spec.resources.requests.storage: Forbidden: field can not be less than status.capacity"),
        ("5Gi", "phase: Bound, capacity: {storage: 2Gi}", 36, ""),
        ("5Gi", "phase: Bound, capacity: {storage: 2Gi}", 31, "spec.resources.requests.storage: Forbidden: field can not be less than previous value"),
        ("5Gi", "phase: Bound, capacity: {storage: 2Gi}, allocatedResources: {storage: 10Gi}", 31, ""),
    ],
)  # fmt: skip
def test_sizes(size: str, status: str, minor: int, problem: str) -> None:
    problems = found(BASE.replace("10Gi", size), claim(BASE, status), minor=minor)
    assert [each.startswith(problem) for each in problems] == ([True] if problem else [])


def test_a_claim_with_a_volume_and_without_status_is_bound() -> None:
    old = claim(f"{BASE}, volumeName: v")
    assert found(f"{BASE}, volumeName: v".replace("10Gi", "20Gi"), old) == []
    assert "field can not be less than previous value" in found(f"{BASE}, volumeName: v".replace("10Gi", "5Gi"), old)[0]


@pytest.mark.parametrize(
    ("old", "new", "is_accepted"),
    [
        ("", "volumeName: v", True),
        ("volumeName: v", "volumeName: w", False),
        ("", "storageClassName: fast", True),
        ("storageClassName: slow", "storageClassName: fast", False),
        ("storageClassName: ''", "", False),
        ("", "volumeMode: Filesystem", True),
        ("", "volumeMode: Block", False),
        ("volumeAttributesClassName: a", "volumeAttributesClassName: b", True),
    ],
)
def test_the_spec_is_immutable(old: str, new: str, is_accepted: bool) -> None:
    assert (found(f"{BASE}, {new}", claim(f"{BASE}, {old}", BOUND)) == []) == is_accepted


CLASS = "volume.beta.kubernetes.io/storage-class"


def test_the_class_may_move_from_its_annotation() -> None:
    old = claim(BASE, BOUND, f"{CLASS}: fast")
    assert found(f"{BASE}, storageClassName: fast", old) == []
    assert found(BASE, old, annotations=f"{CLASS}: slow") == [
        f'metadata.annotations[{CLASS}]: Invalid value: "slow": field is immutable'
    ]


@pytest.mark.parametrize(
    ("new", "minor"), [("", 36), ("volumeAttributesClassName: ''", 36), ("volumeAttributesClassName: b", 33)]
)
def test_rejected_changes_of_attributes(new: str, minor: int) -> None:
    old = claim(f"{BASE}, volumeAttributesClassName: a", f"{BOUND}, currentVolumeAttributesClassName: a")
    assert "spec.volumeAttributesClassName: Forbidden: update" in found(f"{BASE}, {new}", old, minor=minor)[0]


@pytest.mark.parametrize(("minor", "count"), [(33, 1), (34, 2)])
def test_templates(minor: int, count: int) -> None:
    spec = yaml.safe_load(f"{{{SIZE}, volumeAttributesClassName: A}}")
    problems = list(check_claim_spec(spec, Server(minor), ("spec", "volumeClaimTemplates", 0, "spec")))
    assert len(problems) == count
    assert problems[0].path == ("spec", "volumeClaimTemplates", 0, "spec", "accessModes")
