"""Parse text to a syntax tree: tokens, literals and grammar, with cel-go's messages for the first syntax error.

Follows cel-go v0.26.0 ``parser``, ``parser/gen/CEL.g4`` and ``parser/unescape.go``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn

from kpreempt.cel import macros
from kpreempt.cel.source import Problems
from kpreempt.cel.syntax import Call, Ident, ListNode, Literal, MapNode, Node, Select, StructNode
from kpreempt.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint, Value

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}


def string(text: str) -> str:
    """Return the string that a token denotes. Raises ``ValueError`` with cel-go's message."""
    raw, body = _body(text)
    return body if raw or "\\" not in body else "".join(chr(code) for code, _ in _characters(body, of_bytes=False))


def byte_string(text: str) -> bytes:
    """Return the bytes that a token without its ``b`` denotes. Raises ``ValueError`` with cel-go's message."""
    raw, body = _body(text)
    if raw or "\\" not in body:
        return body.encode()
    return b"".join(
        bytes((code,)) if escaped else chr(code).encode() for code, escaped in _characters(body, of_bytes=True)
    )


def integer(text: str) -> int:
    """Raises ``ValueError`` if the number, with its sign, is not an int64."""
    number = _whole(text.removeprefix("-"))
    number = -number if text.startswith("-") else number
    if not MIN_INT <= number <= MAX_INT:
        raise ValueError(text)
    return number


def unsigned(text: str) -> Uint:
    """Raises ``ValueError`` if the number is not a uint64."""
    number = _whole(text[:-1])
    if number > MAX_UINT:
        raise ValueError(text)
    return Uint(number)


def double(text: str) -> float:
    """Raises ``ValueError`` if the number is too large."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(text)
    return number


def _whole(digits: str) -> int:
    if digits.startswith("0x"):
        return int(digits[2:], 16)
    digits = digits.lstrip("0") or "0"
    # Python itself refuses to parse very long numbers; all of them are too large anyway.
    if len(digits) > 20:
        raise ValueError(digits)
    return int(digits)


def _body(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return raw, text[quotes:-quotes]


def _characters(body: str, *, of_bytes: bool) -> list[tuple[int, bool]]:
    """Return code points or bytes, and whether each was written as a number."""
    found = []
    place = 0
    while place < len(body):
        if body[place] != "\\":
            found.append((ord(body[place]), False))
            place += 1
            continue
        code = body[place + 1]
        if code in _SIMPLE:
            found.append((ord(_SIMPLE[code]), False))
            place += 2
            continue
        if code in _DIGITS:
            if of_bytes and code in "uU":
                raise ValueError("unable to unescape string")
            start, end, base = place + 2, place + 2 + _DIGITS[code], 16
        else:
            start, end, base = place + 1, place + 4, 8
        number = int(body[start:end], base)
        if not of_bytes and (number > 0x10FFFF or 0xD800 <= number <= 0xDFFF):
            raise ValueError("invalid unicode code point")
        found.append((number, True))
        place = end
    return found


_MAX_DEPTH = 250
_RESERVED = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_ORDER = (
    "'['", "']'", "'{'", "'}'", "'('", "')'", "'.'", "','", "'-'", "'!'", "'?'", "':'", "'true'", "'false'", "'null'",
    "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER", "ESC_IDENTIFIER",
)  # fmt: skip
_STARTS = frozenset(
    [
        "[",
        "{",
        "(",
        ".",
        "-",
        "!",
        "true",
        "false",
        "null",
        "NUM_FLOAT",
        "NUM_INT",
        "NUM_UINT",
        "STRING",
        "BYTES",
        "IDENTIFIER",
    ]
)
_CONSTANTS: dict[str, Value] = {"true": True, "false": False, "null": None}
_NUMBERS: dict[str, tuple[str, Callable[[str], Value]]] = {
    "NUM_INT": ("int", integer),
    "NUM_UINT": ("uint", unsigned),
    "NUM_FLOAT": ("double", double),
}
# The precedence of binary operators, and the functions they call.
_BINARY = {
    "||": (1, "_||_"), "&&": (2, "_&&_"),
    "<": (3, "_<_"), "<=": (3, "_<=_"), ">": (3, "_>_"), ">=": (3, "_>=_"), "==": (3, "_==_"), "!=": (3, "_!=_"),
    "in": (3, "@in"),
    "+": (4, "_+_"), "-": (4, "_-_"), "*": (5, "_*_"), "/": (5, "_/_"), "%": (5, "_%_"),
}  # fmt: skip
_PREFIX = {"!": "!_", "-": "-_"}
# Operators whose chains count as nesting: relations and calculations, each separately.
_NESTING = {3: "relation", 4: "calc", 5: "calc"}


class _StopError(Exception):
    """A syntax error after which parsing cannot continue."""


def parse(text: str, problems: Problems) -> Node | None:
    """Return the tree with macros expanded; ``None`` if errors were reported."""
    parser = _Parser(text, problems)
    try:
        node = parser.expression()
        if parser.token.kind != "<EOF>":
            word = "extraneous" if parser.tokens[parser.position + 1].kind == "<EOF>" else "mismatched"
            parser.fail(f"{word} input '{parser.token.text}' expecting <EOF>")
    except _StopError:
        return None
    return None if problems else node


class _Parser:
    def __init__(self, text: str, problems: Problems) -> None:
        self.problems = problems
        self.tokens = tokens(text, problems)
        self.position = 0
        self.depths = {"expr": 0, "relation": 0, "calc": 0, "member": 0}
        self.expander = macros.Expander(problems)

    @property
    def token(self) -> Token:
        return self.tokens[self.position]

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def accept(self, kind: str) -> Token | None:
        return self.take() if self.token.kind == kind else None

    def expect(self, kind: str) -> Token:
        if self.token.kind == kind:
            return self.take()
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)].kind
        if following == kind and self.token.kind != "<EOF>":
            self.fail(f"extraneous input '{self.token.text}' expecting '{kind}'")
        if kind != ":" or self.token.kind in _STARTS:
            self.fail(f"missing '{kind}' at '{self.token.text}'")
        return self.fail(f"mismatched input '{self.token.text}' expecting '{kind}'")

    def fail(self, message: str) -> NoReturn:
        self.problems.report(self.token.offset, f"Syntax error: {message}")
        raise _StopError

    def fail_start(self, *also: str) -> NoReturn:
        """No expression starts here; ``also`` are other tokens that would be valid here."""
        allowed = _STARTS.union(also)
        expected = ", ".join(name for name in _ORDER if name.strip("'") in allowed)
        following = self.tokens[min(self.position + 1, len(self.tokens) - 1)].kind
        word = "extraneous" if self.token.kind != "<EOF>" and following in _STARTS else "mismatched"
        self.fail(f"{word} input '{self.token.text}' expecting {{{expected}}}")

    def enter(self, rule: str) -> None:
        self.depths[rule] += 1
        if self.depths[rule] > _MAX_DEPTH:
            self.problems.report(None, f"expression recursion limit exceeded: {_MAX_DEPTH}")
            raise _StopError

    def expression(self, *also: str) -> Node:
        """Parse an expression, including the ternary operator."""
        self.enter("expr")
        node = self.binary(1, also)
        if question_mark := self.accept("?"):
            yes = self.binary(1, ())
            if self.token.kind != ":":
                self.fail(f"mismatched input '{self.token.text}' expecting ':'")
            self.take()
            node = Call(question_mark.offset, "_?_:_", [node, yes, self.expression()])
        self.depths["expr"] -= 1
        return node

    def binary(self, least: int, also: tuple[str, ...]) -> Node:
        """Parse operators with a precedence of at least ``least``; equal ones associate to the left."""
        before = dict(self.depths)
        for rule in ("relation", "calc"):
            self.enter(rule)
        first = self.token
        if first.kind not in _PREFIX or self.is_negative_number():
            left = self.member(also)
        else:
            count = 0
            while self.token.kind == first.kind:
                self.take()
                count += 1
            if first.kind == "-" and self.token.kind == "!":
                self.fail("no viable alternative at input '-!'")
            target = self.member(())
            left = Call(first.offset, _PREFIX[first.kind], [target]) if count % 2 else target
        chain: Call | None = None
        while (found := _BINARY.get(self.token.kind)) and found[0] >= least:
            strength, function = found
            operator = self.take()
            if strength in _NESTING:
                self.enter(_NESTING[strength])
            right = self.binary(strength + 1, ())
            if strength < 3 and chain is not None and chain.function == function:
                # Chains of these may be long, and become a single call.
                chain.args.append(right)
                continue
            left = chain = Call(operator.offset, function, [left, right])
        self.depths = before
        return left

    def is_negative_number(self) -> bool:
        return self.token.kind == "-" and self.tokens[self.position + 1].kind in ("NUM_INT", "NUM_FLOAT")

    def member(self, also: tuple[str, ...]) -> Node:
        """Parse a primary expression with its selections, calls and lookups."""
        before = self.depths["member"]
        self.enter("member")
        node = self.primary(also)
        while self.token.kind in (".", "["):
            self.enter("member")
            node = self.select(node) if self.token.kind == "." else self.index(node)
        self.depths["member"] = before
        return node

    def select(self, operand: Node) -> Node:
        dot = self.take()
        optional = self.accept("?")
        name = self.token
        if name.kind == "ESC_IDENTIFIER":
            self.take()
            self.problems.report(name.offset, "unsupported syntax: '`'")
            return operand
        if name.kind != "IDENTIFIER":
            if optional:
                self.fail(f"mismatched input '{self.token.text}' expecting {{IDENTIFIER, ESC_IDENTIFIER}}")
            if self.token.kind in _CONSTANTS:
                self.fail(f"mismatched input '{self.token.text}' expecting IDENTIFIER")
            rest = "" if self.token.kind == "<EOF>" else self.token.text
            self.fail(f"no viable alternative at input '.{rest}'")
        self.take()
        if optional:
            return Call(dot.offset, "_?._", [operand, Literal(name.offset, name.text)])
        if self.token.kind != "(":
            return Select(dot.offset, operand, name.text)
        return self.expander.call(self.take().offset, name.text, self.arguments(), operand)

    def index(self, operand: Node) -> Node:
        opening = self.take()
        optional = self.accept("?")
        at = self.expression(*(() if optional else ("?",)))
        self.expect("]")
        return Call(opening.offset, "_[?_]" if optional else "_[_]", [operand, at])

    def arguments(self) -> list[Node]:
        if self.accept(")"):
            return []
        found = [self.expression(")")]
        while self.accept(","):
            found.append(self.expression())
        self.expect(")")
        return found

    def primary(self, also: tuple[str, ...]) -> Node:
        token = self.token
        if token.kind == "(":
            self.take()
            node = self.expression()
            if self.token.kind == ",":
                self.fail("mismatched input ',' expecting ')'")
            self.expect(")")
            return node
        if token.kind == "[":
            return self.list_literal()
        if token.kind == "{":
            return self.map_literal()
        if token.kind in ("IDENTIFIER", "."):
            return self.name(also)
        if token.kind in _CONSTANTS:
            return Literal(self.take().offset, _CONSTANTS[token.kind])
        if token.kind in _NUMBERS or self.is_negative_number():
            return self.number()
        if token.kind in ("STRING", "BYTES"):
            return self.text()
        if token.kind == "-":
            following = self.tokens[self.position + 1]
            text = "" if following.kind == "<EOF>" else following.text
            self.problems.report(following.offset, f"Syntax error: no viable alternative at input '-{text}'")
            raise _StopError
        return self.fail_start(*also)

    def number(self) -> Node:
        start = self.token.offset
        sign = self.take().text if self.token.kind == "-" else ""
        token = self.take()
        word, read = _NUMBERS[token.kind]
        try:
            return Literal(start, read(sign + token.text))
        except ValueError:
            self.problems.report(start, f"invalid {word} literal")
            return Literal(start, None)

    def text(self) -> Node:
        token = self.take()
        try:
            value = byte_string(token.text[1:]) if token.kind == "BYTES" else string(token.text)
        except ValueError as error:
            self.problems.report(token.offset, str(error))
            value = ""
        return Literal(token.offset, value)

    def name(self, also: tuple[str, ...]) -> Node:
        """Parse a variable, a function call, or a message literal."""
        start = self.token.offset
        dot = "." if self.accept(".") else ""
        if self.token.kind != "IDENTIFIER":
            self.fail(f"no viable alternative at input '.{self.token.text}'" if dot else "missing IDENTIFIER")
        token = self.take()
        if token.text in _RESERVED:
            self.problems.report(start, f"reserved identifier: {token.text}")
        if opening := self.accept("("):
            return self.expander.call(opening.offset, dot + token.text, self.arguments(), None)
        if message := self.message_name(token.text):
            return self.message(dot + message)
        return Ident(token.offset, dot + token.text)

    def message_name(self, first: str) -> str | None:
        """Parse the dotted name before a brace, if there is one here."""
        ahead = self.position
        names = [first]
        while self.tokens[ahead].kind == "." and self.tokens[ahead + 1].kind == "IDENTIFIER":
            names.append(self.tokens[ahead + 1].text)
            ahead += 2
        if self.tokens[ahead].kind != "{":
            return None
        self.position = ahead
        return ".".join(names)

    def message(self, name: str) -> Node:
        opening = self.take()
        fields: list[tuple[str, Node, int]] = []
        while self.token.kind not in ("}", "<EOF>"):
            self.accept("?")
            if self.token.kind != "IDENTIFIER":
                self.fail(f"mismatched input '{self.token.text}' expecting IDENTIFIER")
            field = self.take().text
            colon = self.expect(":")
            fields.append((field, self.expression(), colon.offset))
            if not self.accept(","):
                break
        self.expect("}")
        return StructNode(opening.offset, name, fields)

    def list_literal(self) -> Node:
        opening = self.take()
        elements: list[Node] = []
        optionals = set()
        while self.token.kind not in ("]", "<EOF>") or not elements:
            if not elements and self.token.kind in ("]", ","):
                self.accept(",")
                break
            if self.accept("?"):
                optionals.add(len(elements))
                elements.append(self.expression())
            else:
                elements.append(self.expression(*(("]", ",", "?") if not elements else ())))
            if not self.accept(","):
                break
            if self.token.kind == ",":
                self.fail("mismatched input ',' expecting ']'")
        self.expect("]")
        return ListNode(opening.offset, elements, frozenset(optionals))

    def map_literal(self) -> Node:
        opening = self.take()
        entries: list[tuple[Node, Node, bool]] = []
        while self.token.kind not in ("}", "<EOF>") or not entries:
            if not entries and self.token.kind in ("}", ","):
                self.accept(",")
                break
            optional = self.accept("?") is not None
            key = self.expression(*(("}", ",", "?") if not entries and not optional else ()))
            self.expect(":")
            entries.append((key, self.expression(), optional))
            if not self.accept(","):
                break
        self.expect("}")
        return MapNode(opening.offset, entries)


_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[0-3][0-7][0-7]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8})"
_STRING = "|".join(
    (
        rf'"""(?:{_ESCAPE}|[^\\])*?"""',
        rf"'''(?:{_ESCAPE}|[^\\])*?'''",
        rf'"(?:{_ESCAPE}|[^\\"\n\r])*"',
        rf"'(?:{_ESCAPE}|[^\\'\n\r])*'",
        r'[rR]"""[\s\S]*?"""',
        r"[rR]'''[\s\S]*?'''",
        r'[rR]"[^"\n\r]*"',
        r"[rR]'[^'\n\r]*'",
    )
)
_TOKEN = re.compile(
    "|".join(
        (
            r"(?P<SKIP>[\t \r\n\f]+|//[^\n]*)",
            rf"(?P<BYTES>[bB](?:{_STRING}))",
            rf"(?P<STRING>{_STRING})",
            r"(?P<NUM_FLOAT>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+|\.[0-9]+(?:[eE][+-]?[0-9]+)?)",
            r"(?P<NUM_UINT>0x[0-9a-fA-F]+[uU]|[0-9]+[uU])",
            r"(?P<NUM_INT>0x[0-9a-fA-F]+|[0-9]+)",
            r"(?P<IDENTIFIER>[A-Za-z_][A-Za-z0-9_]*)",
            r"(?P<ESC_IDENTIFIER>`[A-Za-z0-9_.\-/ ]+`)",
            r"(?P<OPERATOR>==|!=|<=|>=|&&|\|\||[<>\[\]{}().,\-!?:+*/%])",
        )
    )
)
_KEYWORDS = frozenset({"in", "true", "false", "null"})
# The text after an opening quote that is never closed, up to where a string must end.
_OPEN_STRING = {
    quote: re.compile(rf"{quote}(?:{_ESCAPE}|[^\\{quote[0]}\n\r])*(?:\\?[^{quote[0]}]|\\)?") for quote in ('"', "'")
}


class Token(NamedTuple):
    """A token; ``kind`` is a name in the grammar, or the text of operators and keywords; the last is ``<EOF>``."""

    kind: str
    text: str
    offset: int


def tokens(text: str, problems: Problems) -> list[Token]:
    """Return all tokens; invalid text is reported and skipped."""
    found = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            # Text that starts no token includes one character more than could still have become one.
            unclosed = _OPEN_STRING[text[place]].match(text, place) if text[place] in _OPEN_STRING else None
            end = unclosed.end() if unclosed else min(place + (2 if text[place] in "&|=" else 1), len(text))
            problems.report(place, f"Syntax error: token recognition error at: '{text[place:end]}'")
            place = end
            continue
        kind = match.lastgroup or ""
        if kind == "OPERATOR" or match[0] in _KEYWORDS:
            kind = match[0]
        if kind != "SKIP":
            found.append(Token(kind, match[0], place))
        place = match.end()
    found.append(Token("<EOF>", "<EOF>", len(text)))
    return found
