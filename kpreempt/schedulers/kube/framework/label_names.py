"""Label keys and values: what is wrong with one (``pkg/api/validate/content/kube.go``, apimachinery v0.36.3)."""

from __future__ import annotations

import re

_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_KEY_RULE = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
    f" (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"
)
_VALUE = f"({_KEY})?"
_VALUE_RULE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is"
    f" '{_VALUE}')"
)
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_SUBDOMAIN_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and"
    f" end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN}')"
)
_MAX_NAME = 63
_MAX_SUBDOMAIN = 253
_EMPTY = "must be non-empty"


def label_key_problems(key: str) -> list[str]:
    """What is wrong with a qualified name like ``example.com/name``; nothing for a good one."""
    *prefixes, name = key.split("/")
    if len(prefixes) > 1:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_RULE} {optional}"]
    problems = [f"prefix part {problem}" for prefix in prefixes for problem in _prefix_problems(prefix)]
    if not name:
        problems.append(f"name part {_EMPTY}")
    elif len(name.encode()) > _MAX_NAME:
        problems.append(f"name part {_too_long(_MAX_NAME)}")
    if not re.fullmatch(_KEY, name):
        problems.append(f"name part {_KEY_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    """What is wrong with a label's value; nothing for a good one."""
    problems = [_too_long(_MAX_NAME)] if len(value.encode()) > _MAX_NAME else []
    return problems if re.fullmatch(_VALUE, value) else [*problems, _VALUE_RULE]


def _prefix_problems(prefix: str) -> list[str]:
    if not prefix:
        return [_EMPTY]
    problems = [_too_long(_MAX_SUBDOMAIN)] if len(prefix.encode()) > _MAX_SUBDOMAIN else []
    return problems if re.fullmatch(_SUBDOMAIN, prefix) else [*problems, _SUBDOMAIN_RULE]


def _too_long(limit: int) -> str:
    return f"must be no more than {limit} bytes"
