"""Remove sent credentials from text that a server returns."""

from __future__ import annotations

from collections.abc import Iterable
from string import ascii_lowercase, ascii_uppercase

REDACTED = "[redacted]"
# This many consecutive characters reveal a secret; a server may truncate or wrap what it repeats.
_VISIBLE_CHARACTERS = 8
# Content types and host names are lower case.
_SMALL = str.maketrans(ascii_uppercase, ascii_lowercase)


def scrubbed(text: str, secrets: Iterable[str]) -> str:
    """Replace every secret, and any 8 consecutive characters of one, by ``[redacted]``."""
    pieces = {
        secret[at : at + _VISIBLE_CHARACTERS]
        for secret in (each.translate(_SMALL) for each in secrets)
        if secret
        for at in range(max(1, len(secret) - _VISIBLE_CHARACTERS + 1))
    }
    hidden, small = bytearray(len(text)), text.translate(_SMALL)
    for length in {len(piece) for piece in pieces}:
        for at in range(len(text) - length + 1):
            end = at + length
            # A short secret must be a separate word: a one-letter token must not match that letter everywhere.
            if small[at:end] in pieces and (
                length == _VISIBLE_CHARACTERS or not (text[at - 1 : at].isalnum() or text[end : end + 1].isalnum())
            ):
                hidden[at : at + length] = b"\1" * length
    if not any(hidden):
        return text
    shown = [
        character if not hidden[at] else "" if at and hidden[at - 1] else REDACTED for at, character in enumerate(text)
    ]
    return "".join(shown)
