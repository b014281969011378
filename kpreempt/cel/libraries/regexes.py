"""Regular expressions: ``matches`` of cel-go, and Kubernetes' ``library/regex.go``."""

from __future__ import annotations

from kpreempt.cel.functions import declare, declare_operator, regex_cost
from kpreempt.cel.regex import Regex, RegexError, RegexWorkError, compile_regex
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Failure, List, TooLargeError, Value


def _compiled(pattern: str) -> Regex:
    regex = compile_regex(pattern)
    # What was left over from elsewhere does not count.
    regex.work()
    return regex


def _matches(text: Value, pattern: Value) -> Value:
    if type(text) is not str:
        return Failure("no such overload: matches")
    if type(pattern) is not str:
        return NO_SUCH_OVERLOAD
    try:
        return _compiled(pattern).matches(text)
    except RegexError as error:
        return Failure(str(error))
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None


def _find(text: str, pattern: str) -> Value:
    try:
        match = _compiled(pattern).find(text)
    except RegexError as error:
        return Failure(f"Illegal regex: {error}")
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None
    return text[match[0] : match[1]] if match else ""


def _find_all(text: str, pattern: str, limit: int = -1) -> Value:
    try:
        return List(_compiled(pattern).find_all(text, limit))
    except RegexError as error:
        return Failure(f"Illegal regex: {error}")
    except RegexWorkError as error:
        raise TooLargeError(str(error)) from None


declare_operator(
    "matches",
    _matches,
    "(string, string) -> bool",
    "string.(string) -> bool",
    costs={"string.(string) -> bool": regex_cost},
)
declare("find", "string.(string) -> string", _find, cost=regex_cost)
declare("findAll", "string.(string) -> list(string)", _find_all, cost=regex_cost)
declare("findAll", "string.(string, int) -> list(string)", _find_all)
