"""Parse RE2 syntax to a tree, with the messages of Go's ``regexp/syntax``."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import NoReturn

from kpreempt.cel.regex.classes import NAMED, PERL, Chars, folded, unicode_class

MAX_REPEAT = 1000
_MAX_DEPTH = 150
_REPEAT = re.compile(r"\{([0-9]+)(,([0-9]*))?\}", re.ASCII)
_FLAGS = re.compile(r"\(\?([imsU]*)(?:-([imsU]+))?([:)])", re.ASCII)
_GROUP_NAME = re.compile(r"\(\?P?<([A-Za-z0-9_]*)>", re.ASCII)
# Up to the first character that cannot be a flag.
_PERL = re.compile(r"\(\?[imsU]*(?:-[imsU]*)?.", re.ASCII | re.DOTALL)
_CONTROL = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~ ")


class RegexError(Exception):
    """An expression that Go rejects; ``str`` is its message."""


@dataclass(frozen=True, slots=True)
class Empty:
    """The empty expression."""


@dataclass(frozen=True, slots=True)
class CharacterMatch:
    """One character of a class."""

    chars: Chars


@dataclass(frozen=True, slots=True)
class Assertion:
    """An assertion: ``A`` and ``z`` for the ends of the text, ``^`` and ``$`` of a line, ``b`` and ``B`` for words."""

    kind: str


@dataclass(frozen=True, slots=True)
class Sequence:
    """Expressions in sequence."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives; the first that leads to a match is chosen."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """At least ``min`` repetitions; ``max`` is ``None`` for any number."""

    part: Tree
    min: int
    max: int | None
    greedy: bool


Tree = Empty | CharacterMatch | Assertion | Sequence | Choice | Repeat


@dataclass(frozen=True, slots=True)
class _Flags:
    fold: bool = False
    lines: bool = False
    dot_all: bool = False
    lazy: bool = False


def parse(pattern: str) -> Tree:
    """Parse a pattern. Raises ``RegexError``."""
    parser = _Parser(pattern)
    tree = parser.alternatives(_Flags())
    if parser.position < len(pattern):
        parser.fail("unexpected )", pattern)
    return tree


class _Parser:
    def __init__(self, pattern: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.depth = 0

    def fail(self, code: str, context: str) -> NoReturn:
        raise RegexError(f"error parsing regexp: {code}: `{context}`")

    def peek(self) -> str:
        return self.pattern[self.position : self.position + 1]

    def alternatives(self, flags: _Flags) -> Tree:
        """Parse up to a closing parenthesis or the end; flags may change in between."""
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            self.fail("expression nests too deeply", self.pattern)
        found: list[Tree] = []
        parts: list[Tree] = []
        repeated = ""
        while (char := self.peek()) and char != ")":
            if char == "|":
                self.position += 1
                found.append(_sequence(parts))
                parts = []
            elif (match := _FLAGS.match(self.pattern, self.position)) and match[3] == ")":
                flags = self.changed(flags, match)
                self.position = match.end()
            elif char in "*+?" or (char == "{" and _REPEAT.match(self.pattern, self.position)):
                repeated = self.repeat(parts, repeated, flags)
                continue
            else:
                parts.extend(self.atom(flags))
            repeated = ""
        self.depth -= 1
        found.append(_sequence(parts))
        return found[0] if len(found) == 1 else Choice(tuple(found))

    def changed(self, flags: _Flags, match: re.Match[str]) -> _Flags:
        for letters, value in ((match[1], True), (match[2] or "", False)):
            for letter in letters:
                name = {"i": "fold", "m": "lines", "s": "dot_all", "U": "lazy"}[letter]
                flags = replace(flags, **{name: value})
        return flags

    def repeat(self, parts: list[Tree], previous: str, flags: _Flags) -> str:
        """Repeat the last part; return the operator. ``previous`` is an operator directly before it."""
        start = self.position
        least, most = self.counts()
        greedy = not flags.lazy
        if self.peek() == "?":
            self.position += 1
            greedy = not greedy
        this = self.pattern[start : self.position]
        if previous:
            self.fail("invalid nested repetition operator", previous + this)
        if not parts:
            self.fail("missing argument to repetition operator", this)
        parts[-1] = Repeat(parts[-1], least, most, greedy)
        if _repeats(parts[-1]) > MAX_REPEAT:
            self.fail("invalid repeat count", this)
        return this

    def counts(self) -> tuple[int, int | None]:
        """Return the minimum and maximum count of the operator at this position."""
        if match := _REPEAT.match(self.pattern, self.position):
            self.position = match.end()
            least = int(match[1][:9])
            most = (int(match[3][:9]) if match[3] else None) if match[2] else least
            if least > MAX_REPEAT or (most is not None and (most > MAX_REPEAT or most < least)):
                self.fail("invalid repeat count", match[0])
            return least, most
        self.position += 1
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[self.pattern[self.position - 1]]

    def atom(self, flags: _Flags) -> list[Tree]:
        """Parse the next atom; a repetition applies to the last part."""
        char = self.peek()
        if char == "(":
            return [self.group(flags)]
        if char == "[":
            return [CharacterMatch(self.bracket(flags))]
        if char == "\\":
            return self.escape(flags)
        self.position += 1
        if char == ".":
            return [CharacterMatch(PERL["any"] if flags.dot_all else PERL["dot"])]
        if char == "^":
            return [Assertion("^" if flags.lines else "A")]
        if char == "$":
            return [Assertion("$" if flags.lines else "z")]
        return [CharacterMatch(self.single(char, flags))]

    def single(self, char: str, flags: _Flags) -> Chars:
        return _cased(Chars(((ord(char), ord(char)),)), flags)

    def group(self, flags: _Flags) -> Tree:
        if match := _FLAGS.match(self.pattern, self.position):
            flags = self.changed(flags, match)
            self.position = match.end()
        elif self.pattern.startswith("(?", self.position):
            self.group_name()
        else:
            self.position += 1
        inner = self.alternatives(flags)
        if self.peek() != ")":
            self.fail("missing closing )", self.pattern)
        self.position += 1
        return inner

    def group_name(self) -> None:
        rest = self.pattern[self.position :]
        if not rest.startswith(("(?P<", "(?<")):
            bad = _PERL.match(rest)
            self.fail("invalid or unsupported Perl syntax", bad[0] if bad else rest)
        match = _GROUP_NAME.match(rest)
        if match is None or not match[1]:
            end = rest.find(">") + 1
            self.fail("invalid named capture", rest[:end] if end else rest)
        self.position += match.end()

    def escape(self, flags: _Flags) -> list[Tree]:
        """Parse an escape sequence outside of brackets."""
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter == "Q":
            end = self.pattern.find("\\E", self.position + 2)
            text = self.pattern[self.position + 2 : end if end >= 0 else len(self.pattern)]
            self.position = end + 2 if end >= 0 else len(self.pattern)
            return [CharacterMatch(self.single(char, flags)) for char in text]
        if letter == "E":
            self.position += 2
            return []
        if letter and letter in "AzbB":
            self.position += 2
            return [Assertion(letter)]
        if chars := self.perl_class(flags):
            return [CharacterMatch(chars)]
        return [CharacterMatch(self.single(self.escaped_char(), flags))]

    def perl_class(self, flags: _Flags) -> Chars | None:
        """Parse a class escape, such as for digits; return ``None`` for anything else."""
        letter = self.pattern[self.position + 1 : self.position + 2]
        if letter and letter in "dDsSwW":
            self.position += 2
            chars = _cased(PERL[letter.lower()], flags)
            return chars.negated() if letter.isupper() else chars
        if not letter or letter not in "pP":
            return None
        start = self.position
        name = self.pattern[self.position + 2 : self.position + 3]
        self.position += 3
        if name == "{":
            end = self.pattern.find("}", self.position)
            if end < 0:
                self.fail("invalid character class range", self.pattern[start:])
            name = self.pattern[self.position : end]
            self.position = end + 1
        negative = (letter == "P") != name.startswith("^")
        found = unicode_class(name.removeprefix("^"))
        if found is None:
            known = len(name.removeprefix("^")) > 2 and name.removeprefix("^")[0].isupper()
            code = "Unicode scripts are not supported" if known else "invalid character class range"
            self.fail(code, self.pattern[start : self.position])
        found = _cased(found, flags)
        return found.negated() if negative else found

    def escaped_char(self) -> str:
        """Parse the character of an escape, inside or outside of brackets."""
        start = self.position
        letter = self.pattern[start + 1 : start + 2]
        if not letter:
            raise RegexError("error parsing regexp: trailing backslash at end of expression: ``")
        self.position += 2
        if letter in _PUNCTUATION and letter != " ":
            return letter
        if letter in _CONTROL:
            return _CONTROL[letter]
        rest = self.pattern[self.position :]
        if letter in "01234567" and (letter == "0" or rest[:1] in tuple("01234567")):
            match = re.match(r"[0-7]{0,2}", rest)
            assert match is not None
            self.position += match.end()
            return chr(int(letter + match[0], 8))
        if letter == "x" and (match := re.match(r"([0-9a-fA-F]{2})|\{([0-9a-fA-F]+)\}", rest)):
            code = int((match[1] or match[2])[:12], 16)
            if code <= 0x10FFFF:
                self.position += match.end()
                return chr(code)
        return self.fail("invalid escape sequence", self.pattern[start : start + 2])

    def bracket(self, flags: _Flags) -> Chars:
        """Parse ``[...]``."""
        start = self.position
        self.position += 1
        negative = self.peek() == "^"
        self.position += negative
        ranges: list[tuple[int, int]] = []
        first = True
        while self.peek() != "]" or first:
            if not self.peek():
                self.fail("missing closing ]", self.pattern[start:])
            if self.peek() == "-" and not first and self.pattern[self.position + 1 : self.position + 2] != "]":
                # A dash is literal only at the ends.
                following = self.pattern[self.position + 1 : self.position + 2]
                if following:
                    self.fail("invalid character class range", "-" + following)
            first = False
            if named := self.character_class(flags):
                ranges.extend(named.ranges)
                continue
            if self.peek() == "\\" and (perl := self.perl_class(flags)):
                ranges.extend(perl.ranges)
                continue
            ranges.append(self.range(start))
        self.position += 1
        chars = _cased(Chars.of(ranges), flags)
        return chars.negated() if negative else chars

    def character_class(self, flags: _Flags) -> Chars | None:
        """Parse ``[:alpha:]``, inside of brackets."""
        if not self.pattern.startswith("[:", self.position):
            return None
        end = self.pattern.find(":]", self.position + 2)
        if end < 0:
            return None
        text = self.pattern[self.position : end + 2]
        name = text[2:-2]
        chars = NAMED.get(name.removeprefix("^"))
        if chars is None:
            self.fail("invalid character class range", text)
        self.position = end + 2
        chars = _cased(chars, flags)
        return chars.negated() if name.startswith("^") else chars

    def range(self, start: int) -> tuple[int, int]:
        begin = self.position
        low = self.class_char(start)
        if self.peek() != "-" or self.pattern[self.position + 1 : self.position + 2] in ("]", ""):
            return low, low
        self.position += 1
        high = self.class_char(start)
        if high < low:
            self.fail("invalid character class range", self.pattern[begin : self.position])
        return low, high

    def class_char(self, start: int) -> int:
        if not self.peek():
            self.fail("missing closing ]", self.pattern[start:])
        if self.peek() == "\\":
            return ord(self.escaped_char())
        self.position += 1
        return ord(self.pattern[self.position - 1])


def _cased(chars: Chars, flags: _Flags) -> Chars:
    return folded(chars) if flags.fold else chars


def _sequence(parts: list[Tree]) -> Tree:
    if not parts:
        return Empty()
    return parts[0] if len(parts) == 1 else Sequence(tuple(parts))


def _repeats(tree: Tree) -> int:
    """Return the maximum repetition count of the innermost part."""
    if isinstance(tree, Repeat):
        most = tree.max if tree.max is not None else tree.min
        return max(most, 1) * _repeats(tree.part)
    return max(map(_repeats, tree.parts)) if isinstance(tree, Sequence | Choice) else 1
