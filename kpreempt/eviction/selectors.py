"""Label selectors, with Kubernetes' error messages.

Follows ``k8s.io/apimachinery`` v0.36.3 ``pkg/labels/selector.go`` (``Parse``, ``NewRequirement``),
``pkg/apis/meta/v1/helpers.go`` (``LabelSelectorAsSelector``) and ``pkg/api/validate/content/kube.go``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

import msgspec

from kpreempt.model.labels import LabelSelector, is_label_key, is_label_value, matches_requirement, parse_int64

_SYMBOLS = frozenset("=!(),><")
_TOKENS = {")", ",", "!", "==", "=", ">", "in", "<", "!=", "notin", "("}
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "=", "==": "==", "!=": "!=", ">": "Gt", "<": "Lt"}
_SPACES = " \t\r\n"
_INSIDE = re.compile(r"[-A-Za-z0-9_.]*")
_LONGEST_PART = 63
_LONGEST_PREFIX = 253
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_CONSISTS = "consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character"
_KEY_RULE = f"must {_CONSISTS} (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '{_KEY}')"
_VALUE_RULE = (
    f"a valid label must be an empty string or {_CONSISTS} "
    f"(e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '({_KEY})?')"
)
_PREFIX_RULE = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    f"'{_LABEL}(\\.{_LABEL})*')"
)


class SelectorError(ValueError):
    """A selector that Kubernetes rejects, with its message."""


class Requirement(msgspec.Struct, frozen=True):
    """One requirement of a selector."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether ``labels`` satisfy the requirement."""
        if self.operator in ("=", "=="):
            return labels.get(self.key) == self.values[0]
        if self.operator == "!=":
            return labels.get(self.key) != self.values[0]
        return matches_requirement(self.key, self.operator, list(self.values), labels)


def parse_selector(text: str) -> list[Requirement]:
    """Parse a selector from a command line. Raises ``SelectorError``."""
    return _Parser(text).parse()


def problem_of(selector: LabelSelector | None) -> str:
    """Return why the disruption controller cannot use a budget's selector, in its words, or an empty string."""
    if selector is None:
        return ""
    for key, value in selector.match_labels.items():
        if problem := _requirement_problem(key, "=", [value]):
            return problem
    for part in selector.match_expressions:
        if part.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            return f"{_quoted(part.operator)} is not a valid label selector operator"
        if problem := _requirement_problem(part.key, part.operator, part.values):
            return problem
    return ""


def _requirement_problem(key: str, operator: str, values: Sequence[str]) -> str:
    problems = [f"key: {problem}" for problem in [_key_problem(key)] if problem]
    shown = json.dumps(list(values), separators=(",", ":"), ensure_ascii=False) if values else "null"
    if operator in ("In", "NotIn") and not values:
        problems.append(f"values: Invalid value: {shown}: for 'in', 'notin' operators, values set can't be empty")
    elif operator in ("Exists", "DoesNotExist") and values:
        problems.append(f"values: Invalid value: {shown}: values set must be empty for exists and does not exist")
    elif operator in ("Gt", "Lt"):
        problems += [
            f"values[{place}]: Invalid value: {_quoted(value)}: for 'Gt', 'Lt' operators, the value must be an integer"
            for place, value in enumerate(values)
            if parse_int64(value) is None
        ]
    for place, value in enumerate(values):
        if not is_label_value(value):
            why = [f"must be no more than {_LONGEST_PART} bytes"] if len(value.encode()) > _LONGEST_PART else []
            if not is_label_value(value[:1] + value[-1:]) or not _INSIDE.fullmatch(value):
                why.append(_VALUE_RULE)
            problems.append(f"values[{place}][{key}]: Invalid value: {_quoted(value)}: {'; '.join(why)}")
    different = list(dict.fromkeys(problems))
    return different[0] if len(different) == 1 else f"[{', '.join(different)}]" if different else ""


def _key_problem(key: str) -> str:
    """Return what is wrong with a label's key, as ``Invalid value: …``, or an empty string."""
    prefix, slash, name = key.partition("/")
    if not slash:
        prefix, name = "", key
    if is_label_key(key) and "/" not in name and (prefix or not slash):
        return ""
    if "/" in name:
        with_prefix = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return f"Invalid value: {_quoted(key)}: a valid label key {_KEY_RULE} {with_prefix}"
    problems = []
    if slash and not prefix:
        problems.append("prefix part must be non-empty")
    elif prefix and not is_label_key(f"{prefix}/a"):
        if len(prefix) > _LONGEST_PREFIX:
            problems.append(f"prefix part must be no more than {_LONGEST_PREFIX} bytes")
        if len(prefix) <= _LONGEST_PREFIX or not is_label_key(f"{prefix[:_LONGEST_PREFIX].rstrip('.-')}/a"):
            problems.append(f"prefix part {_PREFIX_RULE}")
    if not name:
        problems.append("name part must be non-empty")
    elif len(name.encode()) > _LONGEST_PART:
        problems.append(f"name part must be no more than {_LONGEST_PART} bytes")
    if not name or not is_label_value(name[:1] + name[-1:]) or not _INSIDE.fullmatch(name):
        problems.append(f"name part {_KEY_RULE}")
    return f"Invalid value: {_quoted(key)}: {'; '.join(problems)}"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


class _Parser:
    """The grammar of ``labels.Parse``. ``in`` and ``notin`` are names where a key or a value may appear."""

    def __init__(self, text: str) -> None:
        self._tokens = _scanned(text)
        self._next = 0

    def parse(self) -> list[Requirement]:
        found: list[Requirement] = []
        while True:
            kind, text = self._look()
            if kind == "end":
                return found
            if kind not in ("name", "!"):
                raise SelectorError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                found.append(self._requirement())
            except SelectorError as error:
                raise SelectorError(f"unable to parse requirement: {error}") from None
            kind, text = self._take()
            if kind == "end":
                return found
            if kind != ",":
                raise SelectorError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._look()
            if kind not in ("name", "!"):
                raise SelectorError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, text = self._take()
        is_absent = kind == "!"
        if is_absent:
            kind, text = self._take()
        if kind != "name":
            raise SelectorError(f"found '{text}', expected: identifier")
        key = text
        if problem := _key_problem(key):
            raise SelectorError(f"<nil>: {problem}")
        operator, values = "DoesNotExist" if is_absent else "Exists", tuple[str, ...]()
        if not is_absent and self._look()[0] not in ("end", ","):
            kind, text = self._take(keywords=True)
            if kind not in _OPERATORS:
                raise SelectorError(f"found '{text}', expected: in, notin, =, ==, !=, gt, lt")
            operator, values = _OPERATORS[kind], ("",)
            if kind in ("in", "notin"):
                values = self._values()
            elif self._look()[0] not in ("end", ","):
                kind, text = self._take()
                if kind != "name":
                    raise SelectorError(f"found '{text}', expected: identifier")
                values = (text,)
        if problem := _requirement_problem(key, operator, values):
            raise SelectorError(problem)
        return Requirement(key, operator, values)

    def _values(self) -> tuple[str, ...]:
        kind, text = self._take()
        if kind != "(":
            raise SelectorError(f"found '{text}' expected: '('")
        kind, first = self._look()
        if kind == ")":
            self._take()
            return ("",)
        if kind not in ("name", ","):
            raise SelectorError(f"found '{first}', expected: ',', ')' or identifier")
        values = self._listed()
        if self._take()[0] != ")":
            raise SelectorError(f"found '{first}', expected: ')'")
        return tuple(sorted(values))

    def _listed(self) -> set[str]:
        values: set[str] = set()
        while True:
            kind, text = self._take()
            if kind == "name":
                values.add(text)
                kind, text = self._look()
                if kind == ")":
                    return values
                if kind != ",":
                    raise SelectorError(f"found '{text}', expected: ',' or ')'")
            elif kind == ",":
                if not values:
                    values.add("")
                kind = self._look()[0]
                if kind in (")", ","):
                    values.add("")
                if kind == ")":
                    return values
            else:
                raise SelectorError(f"found '{text}', expected: ',', or identifier")

    def _look(self, *, keywords: bool = False) -> tuple[str, str]:
        kind, text = self._tokens[min(self._next, len(self._tokens) - 1)]
        return ("name", text) if not keywords and kind in ("in", "notin") else (kind, text)

    def _take(self, *, keywords: bool = False) -> tuple[str, str]:
        token = self._look(keywords=keywords)
        self._next += 1
        return token


def _scanned(text: str) -> list[tuple[str, str]]:
    """Return the tokens of a selector with their kinds, including the end."""
    tokens: list[tuple[str, str]] = []
    place = 0
    while True:
        while place < len(text) and text[place] in _SPACES:
            place += 1
        if place >= len(text):
            return [*tokens, ("end", "")]
        start = place
        if text[place] not in _SYMBOLS:
            while place < len(text) and text[place] not in _SYMBOLS and text[place] not in _SPACES:
                place += 1
            word = text[start:place]
            tokens.append((word if word in _TOKENS else "name", word))
            continue
        # The longest run of symbols that is a token; an invalid run is extended until it is one.
        found = ""
        while place < len(text) and text[place] in _SYMBOLS:
            longer = text[start : place + 1]
            if longer in _TOKENS:
                found = longer
            elif found:
                break
            place += 1
        tokens.append((found, found) if found else ("error", f"error expected: keyword found '{text[start:place]}'"))
