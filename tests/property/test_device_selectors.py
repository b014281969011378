"""A selector has the same result for a device among many as for the device alone."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kpreempt.model.devices import CELDeviceSelector, DeviceAttribute, DeviceSelector, ResourceSlice
from kpreempt.schedulers.kube.devices.pools import PoolDevice, Slice
from kpreempt.schedulers.kube.devices.selectors import SelectorError, Selectors
from tests.device_factories import gpus
from tests.strategies_devices import GPU, SELECTORS, devices

ODD = (
    f'device.attributes["{GPU}"].numa == 1',
    f'device.attributes["{GPU}"].size() > 2',
    f'has(device.attributes["{GPU}"].version)',
    f'"numa" in device.attributes["{GPU}"]',
    'device.attributes["other.example.com"].x == 1',
)
# Values that Kubernetes cannot convert end an evaluation, whichever attributes the selector uses.
UNREADABLE = DeviceAttribute(version_value="1.x"), DeviceAttribute(int_values=[1])


@st.composite
def _slices(draw: st.DrawFn) -> ResourceSlice:
    stated = [draw(devices(index, GPU, shares=draw(st.booleans()))) for index in range(draw(st.integers(1, 6)))]
    record = gpus("n", *stated)
    found = list(record.spec.devices)
    if draw(st.booleans()):
        odd = draw(st.sampled_from(UNREADABLE))
        found[0] = msgspec.structs.replace(found[0], attributes={**found[0].attributes, "odd": odd})
    return msgspec.structs.replace(record, spec=msgspec.structs.replace(record.spec, devices=found))


@given(_slices(), st.lists(st.sampled_from((*SELECTORS, *ODD)), min_size=1, max_size=4))
def test_a_device_is_selected_the_same_alone_and_among_others(record: ResourceSlice, expressions: list[str]) -> None:
    among = Selectors(names_devices=True)
    for device in Slice(record).devices:
        for expression in expressions:
            alone = _answer(Selectors(names_devices=True), expression, device)
            assert _answer(among, expression, device) == alone


def _answer(selectors: Selectors, expression: str, device: PoolDevice) -> bool | str:
    try:
        return selectors.select([DeviceSelector(CELDeviceSelector(expression))], device)
    except SelectorError as error:
        return str(error)
