"""Label selectors and node selectors, matched as ``k8s.io/apimachinery`` v0.36.3 ``pkg/labels`` does."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

import msgspec

from kpreempt.model.empty import NO_ENTRIES, NO_ITEMS, Few, Many

_LABEL_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*")
_MAX_SUBDOMAIN = 253
_INTEGER = re.compile(r"[+-]?[0-9]+")

LabelSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist"]
NodeSelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class LabelSelectorRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One expression of a label selector."""

    key: str
    operator: LabelSelectorOperator
    values: Many[str] = NO_ITEMS


class LabelSelector(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """A selector over labels; all parts must hold. The empty one matches everything."""

    match_labels: dict[str, str] = NO_ENTRIES
    match_expressions: Few[LabelSelectorRequirement] = NO_ITEMS

    def is_empty(self) -> bool:
        """Whether the selector has no part at all, and so matches everything."""
        return not self.match_labels and not self.match_expressions

    def is_valid(self) -> bool:
        """Whether upstream's ``LabelSelectorAsSelector`` takes it: In and NotIn need values, the others none."""
        return all(is_label_key(key) and is_label_value(value) for key, value in self.match_labels.items()) and all(
            is_label_key(requirement.key)
            and bool(requirement.values) == (requirement.operator in ("In", "NotIn"))
            and all(map(is_label_value, requirement.values))
            for requirement in self.match_expressions
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether ``labels`` satisfy every part."""
        for key, value in self.match_labels.items():
            if labels.get(key) != value:
                return False
        return all(
            matches_requirement(requirement.key, requirement.operator, requirement.values, labels)
            for requirement in self.match_expressions
        )

    def __str__(self) -> str:
        parts = [f"{key}={value}" for key, value in sorted(self.match_labels.items())]
        parts += [
            format_requirement(requirement.key, requirement.operator, requirement.values)
            for requirement in self.match_expressions
        ]
        return ",".join(parts) or "everything"


class NodeSelectorRequirement(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One expression of a node selector term, over labels or the field ``metadata.name``."""

    key: str
    operator: NodeSelectorOperator
    values: Many[str] = NO_ITEMS


@lru_cache(maxsize=4096)
def is_label_key(key: str) -> bool:
    """Whether ``key`` is a qualified name: a name of up to 63 characters after an optional DNS prefix."""
    prefix, slash, name = key.rpartition("/")
    if slash and (len(prefix) > _MAX_SUBDOMAIN or not _DNS_SUBDOMAIN.fullmatch(prefix)):
        return False
    return _LABEL_NAME.fullmatch(name) is not None


@lru_cache(maxsize=4096)
def is_label_value(value: str) -> bool:
    """Whether ``value`` can be the value of a label: empty, or up to 63 characters."""
    return not value or _LABEL_NAME.fullmatch(value) is not None


def matches_requirement(key: str, operator: str, values: list[str], labels: Mapping[str, str]) -> bool:
    """Whether ``labels`` satisfy one expression.

    ``NotIn`` holds where the key is absent. ``Gt`` and ``Lt`` hold only where the label and the single value are
    integers (upstream ``labels.Requirement.Matches``).
    """
    value = labels.get(key)
    if operator == "In":
        return value is not None and value in values
    if operator == "NotIn":
        return value is None or value not in values
    if operator == "Exists":
        return value is not None
    if operator == "DoesNotExist":
        return value is None
    if value is None or len(values) != 1:
        return False
    have, bound = parse_int64(value), parse_int64(values[0])
    if have is None or bound is None:
        return False
    return have > bound if operator == "Gt" else have < bound


def parse_int64(text: str) -> int | None:
    """The number that Go's ``strconv.ParseInt`` reads from ``text``, or ``None`` where it fails."""
    # 19 digits and a sign are the most that an int64 has; leading zeros are allowed, thousands of them even.
    digits = text.lstrip("+-").lstrip("0")
    if not _INTEGER.fullmatch(text) or len(digits) > 19:
        return None
    number = int(digits or "0") * (-1 if text.startswith("-") else 1)
    return number if -(2**63) <= number < 2**63 else None


def format_requirement(key: str, operator: str, values: list[str]) -> str:
    """An expression in the syntax that ``kubectl -l`` takes."""
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    if operator in ("Gt", "Lt"):
        return f"{key} {'>' if operator == 'Gt' else '<'} {','.join(values)}"
    return f"{key} {'in' if operator == 'In' else 'notin'} ({','.join(sorted(values))})"
