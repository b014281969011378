"""URLs as shown in messages and answers."""

from __future__ import annotations

import re

_END_OF_AUTHORITY = re.compile("[/?#]")
_SCHEMES = ("http", "https")
_END_OF_PATH = re.compile("[?#]")
_HOST_AND_PORT = re.compile(r"(\[[^\]]*\]|[^:]*)(:[0-9]*)?")


def without_secrets(url: str) -> str:
    """Return a URL without user name, password, query and fragment.

    Nothing leaks from invalid URLs either: mistyped, without a scheme, or with an unescaped password.
    """
    scheme, separator, rest = url.partition("://")
    if not separator or ":" in scheme:
        # With a colon before it, "://" is part of a password, not of a scheme.
        scheme, separator, rest = "", "", url
    scheme = scheme.rpartition("@")[2]
    authority = _END_OF_AUTHORITY.split(rest, maxsplit=1)[0]
    if "@" in authority:
        rest = rest[authority.rindex("@") + 1 :]
    elif not (scheme.lower() in _SCHEMES and authority and _HOST_AND_PORT.fullmatch(authority)):
        # An at sign is part of the path only after a complete address.
        rest = rest.rpartition("@")[2]
    return f"{scheme}{separator}{_END_OF_PATH.split(rest, maxsplit=1)[0]}"
