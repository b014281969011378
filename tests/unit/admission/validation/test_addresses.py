"""Which forms of addresses the API server accepts."""

from __future__ import annotations

import pytest

from kpreempt.admission.validation.addresses import address_problem, endpoint_problem, family_of, range_problem


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("10.9.8.7", ""),
        ("2001:db8::FFFF", ""),
        ("010.0.0.1", "must not have leading 0s"),
        ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
    ],
)
def test_addresses(value: str, problem: str) -> None:
    assert address_problem(value, is_strict=True) == problem
    assert address_problem(value, is_strict=False) == ""


@pytest.mark.parametrize("value", ["", "a", "1.2.3", "256.0.0.1", "fe80::1%eth0", "1.2.3.4/8", "None"])
def test_other_values_are_not_addresses(value: str) -> None:
    assert address_problem(value, is_strict=False).startswith("must be a valid IP address")
    assert endpoint_problem(value) == family_of(value) == ""


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("10.0.0.0/8", ""),
        ("fd00::/8", ""),
        ("10.0.0.0/08", "must not have leading 0s"),
        ("010.0.0.0/8", "must not have leading 0s"),
        ("::ffff:1.2.3.4/120", "must not have an IPv4-mapped IPv6 address"),
        ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
    ],
)
def test_ranges(value: str, problem: str) -> None:
    assert range_problem(value, is_strict=True).startswith(problem)
    assert bool(range_problem(value, is_strict=True)) == bool(problem)
    assert range_problem(value, is_strict=False) == ""


@pytest.mark.parametrize("value", ["", "10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", "a/8"])
def test_other_values_are_not_ranges(value: str) -> None:
    assert range_problem(value, is_strict=False).startswith("must be a valid CIDR value")


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("192.0.2.1", ""),
        ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
        ("::ffff:127.0.0.1", "may not be in the loopback range"),
        ("fe80::1", "may not be in the link-local range"),
        ("224.0.0.1", "may not be in the link-local multicast range"),
        ("ff12::1", "may not be in the link-local multicast range"),
        ("ff15::1", ""),
    ],
)
def test_endpoints(value: str, problem: str) -> None:
    assert endpoint_problem(value).startswith(problem)
    assert bool(endpoint_problem(value)) == bool(problem)


def test_a_mapped_address_is_of_the_family_that_it_maps() -> None:
    assert [family_of(each) for each in ("1.2.3.4", "::ffff:1.2.3.4", "::1")] == ["IPv4", "IPv4", "IPv6"]
