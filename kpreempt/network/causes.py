"""What an error was raised for."""

from __future__ import annotations

import ssl


def causes(error: BaseException) -> list[BaseException]:
    """The error and what it was raised for, from the outside in."""
    found: list[BaseException] = []
    each: BaseException | None = error
    while each is not None and each not in found:
        found.append(each)
        each = each.__cause__ or each.__context__
    return found


def tls_error(error: BaseException) -> ssl.SSLError | None:
    """The failure of TLS behind an error; 1.3 tells a refused client certificate only with the first answer."""
    return next((each for each in causes(error) if isinstance(each, ssl.SSLError)), None)
