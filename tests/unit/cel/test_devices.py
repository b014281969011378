"""What a selector sees of a device."""

from __future__ import annotations

from typing import Any

import pytest

from kpreempt.cel import CompileError, EvaluationError
from kpreempt.cel.devices import DeviceView, device_selector


def _view(**fields: Any) -> DeviceView:
    return DeviceView("gpu.example.com", **fields)


@pytest.mark.parametrize(
    ("expression", "fields"),
    [
        pytest.param('device.driver == "gpu.example.com"', {}, id="the driver"),
        pytest.param(
            'device.attributes["gpu.example.com"].model == "a100"',
            {"attributes": {"model": {"string": "a100"}}},
            id="an attribute without a domain has the driver's",
        ),
        pytest.param(
            'device.attributes["dra.example.com"].numa == 1',
            {"attributes": {"dra.example.com/numa": {"int": 1}}},
            id="an attribute with a domain",
        ),
        pytest.param('device.attributes["x"].size() == 0', {}, id="an unknown domain is empty"),
        pytest.param('!("x" in device.attributes)', {}, id="an unknown domain is not there"),
        pytest.param(
            'device.capacity["gpu.example.com"].memory.isGreaterThan(quantity("40Gi"))',
            {"capacity": {"memory": {"value": "80Gi"}}},
            id="a capacity",
        ),
        pytest.param(
            'device.attributes["gpu.example.com"].version.major() == 1',
            {"attributes": {"version": {"version": "1.2.3"}}},
            id="a version",
        ),
        pytest.param("device.allowMultipleAllocations", {"allow_multiple_allocations": True}, id="many allocations"),
    ],
)
def test_matches(expression: str, fields: dict[str, Any]) -> None:
    assert device_selector(expression).matches(_view(**fields))


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        pytest.param({"a": {}}, "attribute a: unsupported attribute value", id="no value"),
        pytest.param({"a": {"ints": [1]}}, "attribute a: unsupported attribute value", id="a list"),
        pytest.param(
            {"a": {"version": "1.2"}},
            "attribute a: parse semantic version: No Major.Minor.Patch elements found",
            id="no version",
        ),
    ],
)
def test_an_attribute_that_kubernetes_does_not_read_is_an_error_of_every_selector(
    attributes: dict[str, Any], message: str
) -> None:
    with pytest.raises(EvaluationError) as failed:
        device_selector("true").matches(_view(attributes=attributes))
    assert str(failed.value) == message


def test_equal_expressions_are_compiled_once() -> None:
    assert device_selector("true") is device_selector("true")


def test_a_selector_is_no_other_type() -> None:
    with pytest.raises(CompileError) as refused:
        device_selector("device.driver")
    assert str(refused.value) == "must evaluate to bool or the unknown type, not string"


@pytest.mark.parametrize(
    ("expression", "by_chance"),
    [
        ('device.attributes["gpu.example.com"].map(k, k)[0] == "a"', True),
        ('device.attributes["gpu.example.com"].exists(k, k == "a")', False),
        ('["b", "a"].map(k, k)[0] == "b"', False),
    ],
)
def test_a_list_in_the_order_of_a_map_is_reported(expression: str, by_chance: bool) -> None:
    selector = device_selector(expression)
    assert selector.matches(_view(attributes={"a": {"int": 1}, "b": {"int": 2}}))
    assert selector.by_chance is by_chance
