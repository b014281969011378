"""Which StorageClasses the API server rejects."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from kpreempt.admission.validation import Server
from kpreempt.admission.validation.storage_classes import check_storage_class

FULL = """
provisioner: example.com/Fast, reclaimPolicy: Retain, volumeBindingMode: WaitForFirstConsumer, parameters: {type: ssd},
allowedTopologies: [{matchLabelExpressions: [{key: zone, values: [a, b]}, {key: rack, values: [a]}]}]
"""


def storage_class(text: str) -> dict[str, Any]:
    return {"metadata": {"name": "fast"}, **yaml.safe_load(f"{{{text}}}")}


def found(text: str, old: str | None = None) -> list[str]:
    before = None if old is None else storage_class(old)
    return [str(each) for each in check_storage_class(storage_class(text), before, Server(36))]


@pytest.mark.parametrize("text", [FULL, "provisioner: a"])
def test_valid_classes(text: str) -> None:
    assert found(text) == found(text, text) == []


def topologies(terms: str) -> str:
    return f"provisioner: a, allowedTopologies: [{terms}]"


TERM = "allowedTopologies[0].matchLabelExpressions"
ZONE = "{matchLabelExpressions: [{key: zone, values: [a]}]}"
REJECTED = {
    "": "provisioner: Required value",
    "provisioner: a b": 'provisioner: Invalid value: "a b": name part must consist',
    "provisioner: a, reclaimPolicy: Recycle": 'reclaimPolicy: Unsupported value: "Recycle"',
    "provisioner: a, volumeBindingMode: ''": 'volumeBindingMode: Unsupported value: ""',
    "provisioner: a, parameters: {'': b}": 'parameters: Invalid value: "": field can not be empty.',
    f"provisioner: a, parameters: {{a: {'b' * 262144}}}": "parameters: Too long",
    f"provisioner: a, parameters: {dict.fromkeys(map(str, range(513)), 'a')}": "parameters: Too long",
    topologies("{matchLabelExpressions: [{key: zone}]}"): f"{TERM}[0].values: Required value",
    topologies("{matchLabelExpressions: [{key: zone, values: [a, a]}]}"): f"{TERM}[0].values: Duplicate value",
    topologies("{matchLabelExpressions: [{key: '', values: [a]}]}"): f'{TERM}[0].key: Invalid value: ""',
    topologies("{matchLabelExpressions: [{key: a, values: [b]}, {key: a, values: [c]}]}"): f"{TERM}[1].key: Duplicate",
    topologies("{}"): f"{TERM}: Duplicate value",
    topologies(f"{ZONE}, {ZONE}"): "allowedTopologies[1].matchLabelExpressions: Duplicate value",
}


@pytest.mark.parametrize("text", REJECTED, ids=lambda text: text[:60])
def test_rejected_classes(text: str) -> None:
    assert [each.startswith(REJECTED[text]) for each in found(text)] == [True]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("provisioner: b", 'provisioner: Invalid value: "b": field is immutable'),
        ("provisioner: a, parameters: {b: c}", 'parameters: Invalid value: {"b": "c"}: field is immutable'),
        ("provisioner: a, reclaimPolicy: Retain", 'reclaimPolicy: Invalid value: "Retain": field is immutable'),
        ("provisioner: a, reclaimPolicy: Delete, allowVolumeExpansion: true", ""),
        (topologies(ZONE), ""),
    ],
)
def test_updates(change: str, problem: str) -> None:
    assert found(change, "provisioner: a") == ([problem] if problem else [])
