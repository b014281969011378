"""Check IP addresses and ranges of them in fields that accepted other forms before strict validation.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/validation/ip.go`` and ``k8s.io/utils/net`` (``ParseIPSloppy``).
Functions that check a value return why it is invalid, or an empty string.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network

_LEADING_ZEROS = re.compile(r"(?<![0-9])0+(?=[0-9])")
_MAPPED_IN_SOURCE = "must not be an IPv4-mapped IPv6 address"
_LINK_LOCAL_MULTICAST = 0xFF, 2


def parsed_address(value: str) -> IPv4Address | IPv6Address | None:
    """Parse an address; octets may begin with zeros. Returns ``None`` if it is not an address."""
    if "%" in value:
        return None
    try:
        return ip_address(_without_zeros(value))
    except ValueError:
        return None


def address_problem(value: str, *, is_strict: bool) -> str:
    """Check an address; a strict check rejects zeros in front, and IPv4 addresses that are written as IPv6."""
    address = parsed_address(value)
    if address is None:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    if is_strict and _without_zeros(value) != value:
        return "must not have leading 0s"
    return _MAPPED_IN_SOURCE if is_strict and _is_mapped(address) else ""


def range_problem(value: str, *, is_strict: bool) -> str:
    """Check a range such as ``10.0.0.0/8``; a strict check also rejects bits behind the prefix."""
    text, _, length = value.partition("/")
    address = parsed_address(text)
    is_number = length.isascii() and length.isdigit()
    if address is None or not is_number or int(length) > address.max_prefixlen:
        return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
    if not is_strict:
        return ""
    if _without_zeros(text) != text or str(int(length)) != length:
        return "must not have leading 0s in IP or prefix length"
    if _is_mapped(address):
        return "must not have an IPv4-mapped IPv6 address"
    is_masked = ip_network((address, int(length)), strict=False).network_address == address
    return "" if is_masked else "must not have bits set beyond the prefix length"


def endpoint_problem(value: str) -> str:
    """Check that an address may be that of an endpoint; others than addresses pass."""
    address = parsed_address(value)
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        address = address.ipv4_mapped
    if address is None:
        return ""
    if address.is_unspecified:
        return f"may not be unspecified ({value})"
    if address.is_loopback:
        return "may not be in the loopback range (127.0.0.0/8, ::1/128)"
    if address.is_link_local:
        return "may not be in the link-local range (169.254.0.0/16, fe80::/10)"
    if _is_link_local_multicast(address):
        return "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
    return ""


def family_of(value: str) -> str:
    """Return ``IPv4`` or ``IPv6``, or an empty string for a value that is not an address."""
    address = parsed_address(value)
    if address is None:
        return ""
    return "IPv6" if isinstance(address, IPv6Address) and not address.ipv4_mapped else "IPv4"


def _is_mapped(address: IPv4Address | IPv6Address) -> bool:
    return isinstance(address, IPv6Address) and address.ipv4_mapped is not None


def _is_link_local_multicast(address: IPv4Address | IPv6Address) -> bool:
    first, second, third = address.packed[:3]
    if isinstance(address, IPv4Address):
        return (first, second, third) == (224, 0, 0)
    return (first, second & 0x0F) == _LINK_LOCAL_MULTICAST


def _without_zeros(value: str) -> str:
    if "." not in value:
        return value
    head, colon, octets = value.rpartition(":")
    return f"{head}{colon}{_LEADING_ZEROS.sub('', octets)}"
