"""What a selector reads of a device: only in this may devices differ that it cannot tell apart."""

from __future__ import annotations

import pytest

from kpreempt.cel.devices import device_selector

OWN = "gpu.example.com"


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        pytest.param(f'device.driver == "{OWN}"', [], id="the driver alone"),
        pytest.param(f'device.attributes["{OWN}"].model == "a"', ["model"], id="an attribute by its name"),
        pytest.param(f'device.attributes["{OWN}"]["model"] == "a"', ["model"], id="an attribute by its key"),
        pytest.param(f'"numa" in device.attributes["{OWN}"]', ["numa"], id="whether there is an attribute"),
        pytest.param(f'has(device.attributes["{OWN}"].ecc)', ["ecc"], id="has an attribute"),
        pytest.param(
            f'device.attributes["{OWN}"].a == 1 || device.attributes["{OWN}"].b == 2', ["a", "b"], id="two attributes"
        ),
        pytest.param(f'device.capacity["{OWN}"].exists(k, k == "slots")', None, id="a loop is not looked into"),
        pytest.param(f'device.attributes["{OWN}"].size() == 2', None, id="how many there are"),
        pytest.param(f'device.attributes["{OWN}"][device.driver] == 1', None, id="a key that is computed"),
        pytest.param(f'device.attributes["{OWN}"].?numa.orValue(1) == 1', None, id="an optional one"),
        pytest.param(f'device.attributes["{OWN}"].all(device, device != "x")', None, id="a name that hides the device"),
    ],
)
def test_the_attributes_that_a_selector_reads(expression: str, names: list[str] | None) -> None:
    wanted = None if names is None else {(OWN, name) for name in names}
    assert device_selector(expression).attributes_read == wanted
