"""Amounts of quota, and how Kueue writes them (``pkg/resources`` of Kueue v0.19.2).

CPU counts in thousandths, everything else in whole units, rounded up. Quota that no int64 holds is unlimited.
"""

from __future__ import annotations

from functools import cache, lru_cache

from kpreempt.model.pod import Pod, PodSpec, ResourceList
from kpreempt.model.quantity import MAX_INT64, NANO_PER_MILLI, NANO_PER_UNIT, Quantity
from kpreempt.schedulers.kube.framework.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES_PREFIX, MEMORY, pod_requests

# Beyond every amount that is bounded: what is added to it or taken from it does not bring it back.
UNLIMITED = 1 << 100
_BEYOND = 1 << 90

FlavorResource = tuple[str, str]
Requests = dict[str, int]

_BINARY = ((60, "Ei"), (50, "Pi"), (40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki"))
_DECIMAL = ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"))
_FNV_OFFSET = 0xCBF29CE484222325
_FNV_PRIME = 0x100000001B3


@cache
def hash_of(resource: str) -> int:
    """The 64-bit FNV-1a hash of a resource's name, by which requests are walked."""
    found = _FNV_OFFSET
    for byte in resource.encode():
        found = ((found ^ byte) * _FNV_PRIME) % 2**64
    return found


def in_order(resources: Requests) -> list[str]:
    """The resources in the order in which Kueue walks them."""
    return sorted(resources, key=lambda name: (hash_of(name), name))


def quota_amount(resource: str, quantity: Quantity) -> int:
    """An amount of quota."""
    unit = NANO_PER_MILLI if resource == CPU else NANO_PER_UNIT
    # CPU is held against whole cores before it is made thousandths.
    most = MAX_INT64 // 1000 * NANO_PER_UNIT if resource == CPU else MAX_INT64 * NANO_PER_UNIT
    return UNLIMITED if quantity.nano >= most else -(-quantity.nano // unit)


def requests_of(quantities: ResourceList) -> Requests:
    """The amounts of a resource list, within an int64."""
    return {name: _request(name, each.nano) for name, each in quantities.items()}


def pod_requests_of(spec: PodSpec) -> Requests:
    """What a pod asks for."""
    return {name: _request(name, nano) for name, nano in pod_requests(Pod(spec=spec)).items()}


def _request(resource: str, nano: int) -> int:
    amount = -(-nano // (NANO_PER_MILLI if resource == CPU else NANO_PER_UNIT))
    return max(-(2**63), min(amount, MAX_INT64))


@lru_cache(maxsize=1 << 16)
def amount_text(resource: str, amount: int) -> str:
    """An amount as Kueue's messages have it."""
    if abs(amount) >= _BEYOND:
        return "<unlimited>" if amount > 0 else str(-(2**63))
    if resource == CPU:
        whole, rest = divmod(amount, 1000)
        return f"{amount}m" if rest else _decimal(whole)
    if resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith(HUGE_PAGES_PREFIX):
        if -1024 < amount < 1024:
            return _decimal(amount)
        for exponent, suffix in _BINARY:
            if not amount % 2**exponent:
                return f"{amount >> exponent}{suffix}"
        return str(amount)
    return _decimal(amount)


def _decimal(amount: int) -> str:
    for exponent, suffix in _DECIMAL:
        if amount and not amount % 10**exponent:
            return f"{amount // 10**exponent}{suffix}"
    return str(amount)
