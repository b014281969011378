"""Label selectors that are narrowed, and what is wrong with those that cannot be parsed.

The words are those of ``k8s.io/apimachinery`` v0.36.3 (``pkg/labels/selector.go``). The API server refuses such
selectors; in a manifest that never met one they make the scheduler give up on the pod.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from kpreempt.model.labels import LabelSelector, LabelSelectorRequirement

_MAX_LENGTH = 63
_MAX_PREFIX_LENGTH = 253

_NAME_SYNTAX = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE_SYNTAX = f"({_NAME_SYNTAX})?"
_SUBDOMAIN_SYNTAX = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
_NAME = re.compile(_NAME_SYNTAX, re.ASCII)
_VALUE = re.compile(_VALUE_SYNTAX, re.ASCII)
_SUBDOMAIN = re.compile(_SUBDOMAIN_SYNTAX, re.ASCII)

_CHARACTERS = "alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_NAME_PROBLEM = (
    f"must consist of {_CHARACTERS} (e.g. 'MyName',  or 'my.name',  or '123-abc', "
    f"regex used for validation is '{_NAME_SYNTAX}')"
)
_KEY_PROBLEM = (
    f"a valid label key {_NAME_PROBLEM} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
)
_VALUE_PROBLEM = (
    f"a valid label must be an empty string or consist of {_CHARACTERS} (e.g. 'MyValue',  or 'my_value',  or '12345', "
    f"regex used for validation is '{_VALUE_SYNTAX}')"
)
_SUBDOMAIN_PROBLEM = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    f"and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '{_SUBDOMAIN_SYNTAX}')"
)


def narrowed(selector: LabelSelector, labels: Mapping[str, str]) -> LabelSelector:
    """A selector for what ``selector`` selects and has ``labels`` too."""
    # Two values for one key can never both hold, but both have to stay.
    contradictions = [
        LabelSelectorRequirement(key, "In", [value])
        for key, value in labels.items()
        if selector.match_labels.get(key, value) != value
    ]
    return LabelSelector(
        match_labels={**labels, **selector.match_labels},
        match_expressions=[*selector.match_expressions, *contradictions],
    )


def selector_error(selector: LabelSelector | None) -> str | None:
    """The message with which ``LabelSelectorAsSelector`` refuses the selector, or ``None`` where it takes it."""
    if selector is None or selector.is_valid():
        return None
    equalities = (LabelSelectorRequirement(key, "In", [value]) for key, value in selector.match_labels.items())
    for requirement in (*equalities, *selector.match_expressions):
        problems = list(dict.fromkeys(_problems(requirement)))
        if problems:
            return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
    return None


def _problems(requirement: LabelSelectorRequirement) -> list[str]:
    """Everything wrong with one expression, in upstream's order."""
    key, values = requirement.key, requirement.values
    problems = []
    about_key = _key_problems(key)
    if about_key:
        problems.append(_invalid("key", key, "; ".join(about_key)))
    if requirement.operator in ("In", "NotIn"):
        if not values:
            problems.append(_invalid("values", None, "for 'in', 'notin' operators, values set can't be empty"))
    elif values:
        problems.append(_invalid("values", values, "values set must be empty for exists and does not exist"))
    for index, value in enumerate(values):
        about_value = _value_problems(value)
        if about_value:
            problems.append(_invalid(f"values[{index}][{key}]", value, "; ".join(about_value)))
    return problems


def _key_problems(key: str) -> list[str]:
    prefix, slash, name = key.rpartition("/")
    if "/" in prefix:
        return [_KEY_PROBLEM]
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif slash:
        problems += [f"prefix part {problem}" for problem in _prefix_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _MAX_LENGTH:
        problems.append(f"name part must be no more than {_MAX_LENGTH} bytes")
    if not _NAME.fullmatch(name):
        problems.append(f"name part {_NAME_PROBLEM}")
    return problems


def _prefix_problems(prefix: str) -> list[str]:
    problems = []
    if len(prefix.encode()) > _MAX_PREFIX_LENGTH:
        problems.append(f"must be no more than {_MAX_PREFIX_LENGTH} bytes")
    if not _SUBDOMAIN.fullmatch(prefix):
        problems.append(_SUBDOMAIN_PROBLEM)
    return problems


def _value_problems(value: str) -> list[str]:
    problems = []
    if len(value.encode()) > _MAX_LENGTH:
        problems.append(f"must be no more than {_MAX_LENGTH} bytes")
    if not _VALUE.fullmatch(value):
        problems.append(_VALUE_PROBLEM)
    return problems


def _invalid(path: str, value: object, problem: str) -> str:
    return f"{path}: Invalid value: {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}: {problem}"
