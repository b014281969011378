"""Which names of resources are valid in which place."""

from __future__ import annotations

import pytest

from kpreempt.admission.validation.resource_names import (
    container_resource_name,
    is_extended,
    is_overcommitted,
    quota_resource_name,
    resource_name,
)


@pytest.mark.parametrize(
    ("name", "is_known", "is_of_containers", "is_of_quotas"),
    [
        ("cpu", True, True, True),
        ("hugepages-2Mi", True, True, True),
        ("requests.hugepages-2Mi", True, False, True),
        ("requests.cpu", True, False, True),
        ("storage", True, False, False),
        ("gpu", False, False, False),
        ("example.com/gpu", True, True, True),
        ("kubernetes.io/gpu", True, True, True),
        ("requests.example.com/gpu", True, False, True),
        (f"{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 62}/gpu", True, False, True),
        ("/gpu", False, False, False),
    ],
)
def test_places(name: str, is_known: bool, is_of_containers: bool, is_of_quotas: bool) -> None:
    problems = [check(name) for check in (resource_name, container_resource_name, quota_resource_name)]
    assert [not each for each in problems] == [is_known, is_of_containers, is_of_quotas]


def test_kinds_of_resources() -> None:
    assert [is_extended(each) for each in ("example.com/gpu", "kubernetes.io/gpu", "cpu")] == [True, False, False]
    assert [is_overcommitted(each) for each in ("cpu", "hugepages-2Mi", "example.com/gpu")] == [True, False, False]
