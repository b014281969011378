"""Semantic versions, as in Kubernetes' ``library/semverlib.go`` and ``github.com/blang/semver/v4``."""

from __future__ import annotations

from functools import partial

from kpreempt.cel.functions import Overload, declare, one, per_character
from kpreempt.cel.libraries.texts import quoted
from kpreempt.cel.values import MAX_UINT, NO_SUCH_OVERLOAD, Failure, Opaque, Value

_DIGITS = frozenset("0123456789")
_ALPHANUMERIC = _DIGITS | frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-")


class Semver(Opaque):
    """A version; ``order`` compares as versions do."""

    __slots__ = ("build", "numbers", "prerelease")
    type_name = "kubernetes.Semver"

    def __init__(
        self, numbers: tuple[int, int, int], prerelease: tuple[int | str, ...], build: tuple[str, ...]
    ) -> None:
        self.numbers = numbers
        self.prerelease = prerelease
        self.build = build

    @property
    def order(self) -> tuple[object, ...]:
        """What versions are ordered by: the build does not count, and a prerelease comes before the release."""
        return self.numbers, not self.prerelease, tuple((isinstance(part, str), part) for part in self.prerelease)

    def equals(self, other: Value) -> bool | Failure:
        return self.order == other.order if isinstance(other, Semver) else NO_SUCH_OVERLOAD

    def __str__(self) -> str:
        text = ".".join(map(str, self.numbers))
        text += f"-{'.'.join(map(str, self.prerelease))}" if self.prerelease else ""
        return text + (f"+{'.'.join(self.build)}" if self.build else "")


def parse_semver(text: str) -> Semver:
    """Raises ``ValueError`` with the message of the library that Kubernetes uses."""
    if not text:
        raise ValueError("Version string empty")
    parts = text.split(".", 2)
    if len(parts) != 3:
        raise ValueError("No Major.Minor.Patch elements found")
    major, minor = _number(parts[0], "major", "Major"), _number(parts[1], "minor", "Minor")
    rest, plus, build = parts[2].partition("+")
    patch, dash, prerelease = rest.partition("-")
    numbers = (major, minor, _number(patch, "patch", "Patch"))
    pre = tuple(map(_prerelease, prerelease.split("."))) if dash else ()
    return Semver(numbers, pre, tuple(map(_build, build.split("."))) if plus else ())


def _number(text: str, word: str, title: str) -> int:
    if not _DIGITS.issuperset(text):
        raise ValueError(f"Invalid character(s) found in {word} number {quoted(text)}")
    if len(text) > 1 and text[0] == "0":
        raise ValueError(f"{title} number must not contain leading zeroes {quoted(text)}")
    return _uint(text)


def _uint(text: str) -> int:
    if not text:
        raise ValueError('strconv.ParseUint: parsing "": invalid syntax')
    if len(text) > 20 or int(text) > MAX_UINT:
        raise ValueError(f"strconv.ParseUint: parsing {quoted(text)}: value out of range")
    return int(text)


def _prerelease(text: str) -> int | str:
    if not text:
        raise ValueError("Prerelease is empty")
    if _DIGITS.issuperset(text):
        if len(text) > 1 and text[0] == "0":
            raise ValueError(f"Numeric PreRelease version must not contain leading zeroes {quoted(text)}")
        return _uint(text)
    if not _ALPHANUMERIC.issuperset(text):
        raise ValueError(f"Invalid character(s) found in prerelease {quoted(text)}")
    return text


def _build(text: str) -> str:
    if not text:
        raise ValueError("Build meta data is empty")
    if not _ALPHANUMERIC.issuperset(text):
        raise ValueError(f"Invalid character(s) found in build meta data {quoted(text)}")
    return text


def _normalized(text: str) -> str:
    """A version as people write it, made whole: without ``v`` and leading zeroes, with missing numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part.encode(errors="surrogatepass")) > 1:
            stripped = part.lstrip("0")
            parts[index] = stripped if stripped and stripped[0] in _DIGITS else f"0{stripped}"
    if len(parts) < 3:
        if "+" in parts[-1] or "-" in parts[-1]:
            raise ValueError("short version cannot contain PreRelease/Build meta data")
        parts.extend(["0"] * (3 - len(parts)))
    return ".".join(parts)


def _semver(text: str, normalize: bool = False) -> Value:
    try:
        return parse_semver(_normalized(text) if normalize else text)
    except ValueError as error:
        return Failure(str(error))


def _number_at(index: int, version: Semver) -> int:
    number = version.numbers[index]
    return number if number < 2**63 else number - 2**64


def _compare(left: Semver, right: Semver) -> int:
    return (left.order > right.order) - (left.order < right.order)


_PARSED = per_character()
_OF = "kubernetes.Semver"

declare(
    Overload("semver", f"(string) -> {_OF}", _semver, _PARSED),
    Overload("semver", f"(string, bool) -> {_OF}", _semver),
    Overload("isSemver", "(string) -> bool", lambda text: type(_semver(text)) is Semver, _PARSED),
    Overload("isSemver", "(string, bool) -> bool", lambda text, normalize: type(_semver(text, normalize)) is Semver),
    Overload("isGreaterThan", f"{_OF}.({_OF}) -> bool", lambda left, right: _compare(left, right) > 0, one),
    Overload("isLessThan", f"{_OF}.({_OF}) -> bool", lambda left, right: _compare(left, right) < 0, one),
    Overload("compareTo", f"{_OF}.({_OF}) -> int", _compare, one),
    *(
        Overload(_name, f"{_OF}.() -> int", partial(_number_at, _index), one)
        for _index, _name in enumerate(("major", "minor", "patch"))
    ),
)
