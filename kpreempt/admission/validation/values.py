"""The forms of names, labels, numbers and amounts that the API server accepts.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/util/validation/validation.go``, ``pkg/api/validation/generic.go`` and
``pkg/apis/meta/v1/validation/validation.go``. Each function returns why a value is invalid, or an empty string.
"""

from __future__ import annotations

import re

from kpreempt.model.quantity import Quantity, quantity

MAX_LABEL = 63
MAX_SUBDOMAIN = 253
MAX_LABEL_VALUE = 63
MAX_PORT = 65535
MAX_INT32 = 2**31 - 1

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS_1035 = r"[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL_VALUE = rf"({_QUALIFIED})?"
_PORT_NAME = re.compile(r"[-a-z0-9]+")
_ENVIRONMENT_NAME = r"[-._a-zA-Z][-._a-zA-Z0-9]*"
_RELAXED_ENVIRONMENT_NAME = re.compile(r"[ -<>-~]+")
_CONFIG_KEY = r"[-._a-zA-Z0-9]+"
_PERCENT = r"[0-9]+%"
_TOO_LONG = "must be no more than {} characters"


def _check_form(value: str, words: str, pattern: str, longest: int | None = None) -> str:
    """Check the length and the form of a value; ``words`` say what the form is."""
    if longest is not None and len(value) > longest:
        return _TOO_LONG.format(longest)
    return "" if re.fullmatch(pattern, value) else f"{words} (regex used for validation is '{pattern}')"


def dns_label(value: str) -> str:
    """Check an RFC 1123 label, such as the name of a container or a namespace."""
    words = (
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end "
        "with an alphanumeric character"
    )
    return _check_form(value, words, _LABEL, MAX_LABEL)


def dns_subdomain(value: str) -> str:
    """Check an RFC 1123 subdomain, such as the names of most objects."""
    words = (
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
        "and end with an alphanumeric character"
    )
    return _check_form(value, words, _SUBDOMAIN, MAX_SUBDOMAIN)


def dns_1035_label(value: str) -> str:
    """Check an RFC 1035 label, such as the name of a Service."""
    words = (
        "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic "
        "character, and end with an alphanumeric character"
    )
    return _check_form(value, words, _DNS_1035, MAX_LABEL)


def qualified_name(value: str) -> str:
    """Check a key of a label, an annotation or a resource: a name after an optional DNS prefix."""
    prefix, slash, name = value.rpartition("/")
    if slash:
        if not prefix:
            return "prefix part must be non-empty"
        if problem := dns_subdomain(prefix):
            return f"prefix part {problem}"
    if not name:
        return "name part must be non-empty"
    words = (
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
        "character"
    )
    problem = _check_form(name, words, _QUALIFIED, MAX_LABEL)
    return f"name part {problem}" if problem else ""


def label_value(value: str) -> str:
    """Check the value of a label."""
    words = (
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start "
        "and end with an alphanumeric character"
    )
    return _check_form(value, words, _LABEL_VALUE, MAX_LABEL_VALUE)


def port_number(value: int) -> str:
    """Check the number of a port."""
    return "" if 1 <= value <= MAX_PORT else f"must be between 1 and {MAX_PORT}, inclusive"


def port_name(value: str) -> str:
    """Check the name of a container's port (an IANA service name)."""
    if len(value) > 15:
        return _TOO_LONG.format(15)
    if not _PORT_NAME.fullmatch(value):
        return "must contain only alphanumeric characters (a-z, 0-9), and hyphens (-)"
    if not re.search("[a-z]", value):
        return "must contain at least one letter (a-z)"
    if "--" in value:
        return "must not contain consecutive hyphens"
    if value.startswith("-") or value.endswith("-"):
        return "must not begin or end with a hyphen"
    return ""


def environment_name(value: str, *, is_relaxed: bool) -> str:
    """Check the name of an environment variable; relaxed names are any printable ASCII except ``=``."""
    if is_relaxed:
        is_valid = bool(_RELAXED_ENVIRONMENT_NAME.fullmatch(value))
        return "" if is_valid else "a valid environment variable name must consist only of printable ASCII except '='"
    words = (
        "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', and must "
        "not start with a digit"
    )
    return _check_form(value, words, _ENVIRONMENT_NAME) or _no_parent_path(value)


def config_key(value: str) -> str:
    """Check a key of a ConfigMap or a Secret."""
    words = "a valid config key must consist of alphanumeric characters, '-', '_' or '.'"
    return _check_form(value, words, _CONFIG_KEY, MAX_SUBDOMAIN) or _no_parent_path(value)


def _no_parent_path(value: str) -> str:
    if value == ".":
        return "must not be '.'"
    if value == "..":
        return "must not be '..'"
    return "must not start with '..'" if value.startswith("..") else ""


def percent(value: str) -> str:
    """Check a percentage such as ``25%``."""
    return _check_form(value, "a valid percent string must be a numeric string followed by an ending '%'", _PERCENT)


def amount(value: object) -> Quantity:
    """Parse a quantity of a decoded document, which may be a number."""
    return quantity(str(value))


def int_or_percent(value: object) -> str:
    """Check a number of pods that is not negative, or a percentage."""
    if isinstance(value, str):
        return percent(value)
    is_number = isinstance(value, int) and value >= 0
    return "" if is_number else "must be greater than or equal to 0"


def percentage_of(value: object) -> int | None:
    """Return the number of a percentage; ``None`` for anything else."""
    is_percent = isinstance(value, str) and not percent(value)
    # Python does not convert very long numbers.
    return int(str(value)[:-1].lstrip("0")[:9] or 0) if is_percent else None


def path_segment(value: str) -> str:
    """Check a name that may be part of a URL, as the names of all objects must be."""
    if value in (".", ".."):
        return f"may not be '{value}'"
    return next((f"may not contain '{each}'" for each in "/%" if each in value), "")
