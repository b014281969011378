"""Named formats, like Kubernetes' ``library/format.go`` and ``apimachinery`` v0.36.3 ``pkg/api/validate/content``."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import partial

from kpreempt.cel.functions import REGEX_LENGTH, TRAVERSAL, Overload, declare, one, size_of
from kpreempt.cel.libraries.networks import UrlError, parse_request_uri
from kpreempt.cel.regex import compile_regex
from kpreempt.cel.values import NO_SUCH_OVERLOAD, NONE, Failure, List, Opaque, OptionalValue, Value

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_KEY = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_BASE64 = "([A-Za-z0-9+/]{4})*([A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{4})"
_UUID = re.compile(r"[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_CLOCK = re.compile(r"([0-9]{2}):([0-9]{2}):([0-9]{2})(.[0-9]+)?(z|([+-][0-9]{2}:[0-9]{2}))", re.ASCII)


@dataclass(eq=False)
class NamedFormat(Opaque):
    """A format; ``check`` returns the problems of a text, and ``cost`` is the assumed length of its regex."""

    name: str
    cost: int
    check: Callable[[str], list[str]]
    type_name = "kubernetes.NamedFormat"

    def equals(self, other: Value) -> bool | Failure:
        return self.name == other.name if isinstance(other, NamedFormat) else NO_SUCH_OVERLOAD


def _matches(pattern: str, text: str) -> bool:
    return compile_regex(f"^(?:{pattern})$").matches(text)


def _too_long(text: str, most: int) -> list[str]:
    return [f"must be no more than {most} bytes"] if len(text.encode(errors="surrogatepass")) > most else []


def _regex_problem(text: str, pattern: str, *examples: str) -> str:
    shown = " or ".join(f"'{example}', " for example in examples)
    return f"{text} (e.g. {shown}regex used for validation is '{pattern}')"


def _shaped(pattern: str, most: int, problem: str, text: str) -> list[str]:
    """Return the problems of a text with a pattern and a maximum number of bytes."""
    problems = _too_long(text, most)
    if not _matches(pattern, text):
        # A label that would be valid without its dots gets a separate message.
        has_dots = pattern == _LABEL and _matches(_SUBDOMAIN, text)
        problems.append("must not contain dots" if has_dots else problem)
    return problems


_LABEL_PROBLEM = _regex_problem(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    *(_LABEL, "my-name", "123-abc"),
)
_SUBDOMAIN_PROBLEM = _regex_problem(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    *(_SUBDOMAIN, "example.com"),
)
_LABEL_1035_PROBLEM = _regex_problem(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    *(_LABEL_1035, "my-name", "abc-123"),
)
_KEY_PROBLEM = _regex_problem(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    *(_KEY, "MyName", "my.name", "123-abc"),
)
_VALUE_PROBLEM = _regex_problem(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    *(f"({_KEY})?", "MyValue", "my_value", "12345"),
)
_label = partial(_shaped, _LABEL, 63, _LABEL_PROBLEM)
_subdomain = partial(_shaped, _SUBDOMAIN, 253, _SUBDOMAIN_PROBLEM)
_label_1035 = partial(_shaped, _LABEL_1035, 63, _LABEL_1035_PROBLEM)


def _qualified_name(text: str) -> list[str]:
    parts = text.split("/")
    if len(parts) > 2:
        tail = " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_KEY_PROBLEM}{tail}"]
    problems = []
    if len(parts) == 2:
        found = _subdomain(parts[0]) if parts[0] else ["must be non-empty"]
        problems += [f"prefix part {problem}" for problem in found]
    name = parts[-1]
    problems += [f"name part {problem}" for problem in (_too_long(name, 63) if name else ["must be non-empty"])]
    if not _matches(_KEY, name):
        problems.append(f"name part {_KEY_PROBLEM}")
    return problems


def _prefix(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Check a name prefix: trailing dashes are allowed and removed first."""
    return lambda text: check(text[:-2] + "a" if len(text) > 1 and text.endswith("-") else text)


def _uri(text: str) -> list[str]:
    try:
        parse_request_uri(text)
    except UrlError as error:
        return [str(error)]
    return []


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        # Year 0 is a leap year.
        date.fromisoformat(text if text[:4] != "0000" else f"0400{text[4:]}")
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    parts = text.lower().split("t")
    match = _CLOCK.fullmatch(parts[1]) if len(parts) > 1 else None
    if match is None or not _is_date(parts[0]):
        return False
    return int(match[1]) <= 23 and int(match[2]) <= 59 and int(match[3]) <= 59


def _unless(test: Callable[[str], object], problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if test(text) else [problem]


_FORMATS = {
    "dns1123Label": NamedFormat("DNS1123Label", 30, _label),
    "dns1123Subdomain": NamedFormat("DNS1123Subdomain", 60, _subdomain),
    "dns1035Label": NamedFormat("DNS1035Label", 30, _label_1035),
    "qualifiedName": NamedFormat("QualifiedName", 60, _qualified_name),
    "dns1123LabelPrefix": NamedFormat("DNS1123LabelPrefix", 30, _prefix(_label)),
    "dns1123SubdomainPrefix": NamedFormat("DNS1123SubdomainPrefix", 60, _prefix(_subdomain)),
    "dns1035LabelPrefix": NamedFormat("DNS1035LabelPrefix", 30, _prefix(_label_1035)),
    "labelValue": NamedFormat("LabelValue", 40, partial(_shaped, f"({_KEY})?", 63, _VALUE_PROBLEM)),
    "uri": NamedFormat("URI", 1103, _uri),
    "uuid": NamedFormat("uuid", 70, _unless(_UUID.fullmatch, "does not match the UUID format")),
    "byte": NamedFormat("byte", 84, _unless(partial(_matches, _BASE64), "invalid base64")),
    "date": NamedFormat("date", 71, _unless(_is_date, "invalid date")),
    "datetime": NamedFormat("datetime", 71, _unless(_is_datetime, "invalid datetime")),
}


def _validate_cost(args: Sequence[Value], _result: Value) -> int:
    if not isinstance(args[0], NamedFormat):
        return 1
    return math.ceil((1.0 + size_of(args[1])) * TRAVERSAL) * math.ceil(args[0].cost * REGEX_LENGTH)


declare(
    Overload(
        "validate",
        "kubernetes.NamedFormat.(string) -> optional_type(list(string))",
        lambda format_, text: OptionalValue(List(problems)) if (problems := format_.check(text)) else NONE,
        _validate_cost,
    ),
    Overload(
        "format.named",
        "(string) -> optional_type(kubernetes.NamedFormat)",
        lambda name: OptionalValue(_FORMATS[name]) if name in _FORMATS else NONE,
        one,
    ),
    *(
        Overload(f"format.{_name}", "() -> kubernetes.NamedFormat", lambda _made=_format: _made)
        for _name, _format in _FORMATS.items()
    ),
)
