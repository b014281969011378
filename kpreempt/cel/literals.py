"""What the text of a literal means: escapes of strings and bytes, numbers that fit. As in ``parser/unescape.go``."""

from __future__ import annotations

from kpreempt.cel.values import MAX_INT, MAX_UINT, MIN_INT, Uint

_SIMPLE = {
    "a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
    "\\": "\\", "'": "'", '"': '"', "`": "`", "?": "?",
}  # fmt: skip
_DIGITS = {"x": 2, "X": 2, "u": 4, "U": 8}


def string(text: str) -> str:
    """The string that a token states. Raises ``ValueError`` with cel-go's message."""
    raw, body = _body(text)
    return body if raw or "\\" not in body else "".join(chr(code) for code, _ in _characters(body, of_bytes=False))


def byte_string(text: str) -> bytes:
    """The bytes that a token without its ``b`` states. Raises ``ValueError`` with cel-go's message."""
    raw, body = _body(text)
    if raw or "\\" not in body:
        return body.encode()
    return b"".join(
        bytes((code,)) if escaped else chr(code).encode() for code, escaped in _characters(body, of_bytes=True)
    )


def integer(text: str) -> int:
    """Raises ``ValueError`` where the number, with its sign, is no int64."""
    negative = text.startswith("-")
    digits = text.removeprefix("-")
    number = int(digits[2:], 16) if digits.startswith("0x") else _decimal(digits)
    number = -number if negative else number
    if not MIN_INT <= number <= MAX_INT:
        raise ValueError(text)
    return number


def unsigned(text: str) -> Uint:
    """Raises ``ValueError`` where the number is no uint64."""
    digits = text[:-1]
    number = int(digits[2:], 16) if digits.startswith("0x") else _decimal(digits)
    if number > MAX_UINT:
        raise ValueError(text)
    return Uint(number)


def double(text: str) -> float:
    """Raises ``ValueError`` where the number is too large."""
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError(text)
    return number


def _decimal(digits: str) -> int:
    digits = digits.lstrip("0") or "0"
    # Python itself refuses to read very long numbers; all of them are too large anyway.
    if len(digits) > 20:
        raise ValueError(digits)
    return int(digits)


def _body(text: str) -> tuple[bool, str]:
    raw = text[0] in "rR"
    text = text[1:] if raw else text
    quotes = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return raw, text[quotes:-quotes]


def _characters(body: str, *, of_bytes: bool) -> list[tuple[int, bool]]:
    """Code points or bytes, and whether each was written as a number."""
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
