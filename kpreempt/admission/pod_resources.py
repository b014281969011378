"""Sums of the requests or limits of a pod's containers, as quantities.

Follows ``k8s.io/component-helpers`` v0.36.3 ``resource/helpers.go`` (``AggregateContainerRequests`` and
``AggregateContainerLimits``), without the pod's status, which admission does not use.
"""

from __future__ import annotations

from collections.abc import Callable

from kpreempt.model.pod import Container, Pod, ResourceList
from kpreempt.model.quantity import NANO_PER_MILLI, NANO_PER_UNIT, Quantity, quantity

_DECIMAL_SUFFIXES = ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"), (0, ""), (-3, "m"), (-6, "u"))
_BINARY_SUFFIXES = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))


def total_requests(pod: Pod) -> ResourceList:
    """Return the requests of all containers: sidecars add up, other init containers count only while they run."""
    return _total(pod, lambda container: container.resources.requests)


def total_limits(pod: Pod) -> ResourceList:
    """Return the limits of all containers, added up like requests."""
    return _total(pod, lambda container: container.resources.limits)


def round_up_to_milli(amounts: ResourceList) -> ResourceList:
    """Round amounts up to thousandths; return the same list if none changes."""
    if all(amount.nano % NANO_PER_MILLI == 0 for amount in amounts.values()):
        return amounts
    return {name: _rounded_up(amount) for name, amount in amounts.items()}


def format_nano(nano: int, *, binary: bool = False) -> str:
    """Format an amount in 1e-9 units as its shortest exact quantity; ``binary`` prefers Ki, Mi, Gi."""
    if binary and nano and nano % NANO_PER_UNIT == 0:
        units = nano // NANO_PER_UNIT
        for bits, suffix in _BINARY_SUFFIXES:
            if units % (1 << bits) == 0:
                return f"{units >> bits}{suffix}"
        return str(units)
    if nano == 0:
        return "0"
    for exponent, suffix in _DECIMAL_SUFFIXES:
        scale = 10 ** (exponent + 9)
        if nano % scale == 0:
            return f"{nano // scale}{suffix}"
    return f"{nano}n"


def _total(pod: Pod, of: Callable[[Container], ResourceList]) -> ResourceList:
    total: ResourceList = {}
    for container in pod.spec.containers:
        add_amounts(total, of(container))
    sidecars: ResourceList = {}
    while_starting: ResourceList = {}
    for container in pod.spec.init_containers:
        if container.restart_policy == "Always":
            add_amounts(total, of(container))
            add_amounts(sidecars, of(container))
            needs = sidecars
        else:
            needs = dict(of(container))
            add_amounts(needs, sidecars)
        raise_amounts(while_starting, needs)
    raise_amounts(total, while_starting)
    return total


def add_amounts(total: ResourceList, more: ResourceList) -> None:
    """Add every amount of ``more`` to ``total``, in place."""
    for name, amount in more.items():
        have = total.get(name)
        is_binary = have is not None and have.text.endswith("i")
        total[name] = amount if have is None else quantity(format_nano(have.nano + amount.nano, binary=is_binary))


def raise_amounts(total: ResourceList, least: ResourceList) -> None:
    """Raise the amounts in ``total`` to at least those of ``least``, in place."""
    for name, amount in least.items():
        if name not in total or amount.nano > total[name].nano:
            total[name] = amount


def _rounded_up(amount: Quantity) -> Quantity:
    rest = amount.nano % NANO_PER_MILLI
    if rest == 0:
        return amount
    # Rounds away from zero, like upstream.
    return quantity(format_nano(amount.nano - rest if amount.nano < 0 else amount.nano - rest + NANO_PER_MILLI))
