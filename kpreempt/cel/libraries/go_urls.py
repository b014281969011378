"""URLs as Go's ``net/url`` reads them, and their functions, as in Kubernetes' ``library/urls.go``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote_from_bytes, unquote_to_bytes

from kpreempt.cel.functions import Overload, declare, one, per_character
from kpreempt.cel.libraries.networks import BadAddressError, parse_address
from kpreempt.cel.libraries.texts import quoted
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Failure, List, Map, Opaque, Value

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}", re.ASCII)
_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\"")
_PATH_SAFE = "-_.~$&+,/:;=@"
_PATH_VALID = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%]*", re.ASCII)
_MAX_PARAMETERS = 10_000


class UrlError(Exception):
    """Text that is no URL; ``str`` is Go's message."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL; ``path`` is as it was written, or as Go would write it."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    opaque: str = ""
    query: str = ""
    fragment: str = ""
    no_host: bool = False
    asks: bool = False

    @property
    def hostname(self) -> str:
        host = self.host
        if host.startswith("["):
            end = host.find("]")
            return host[1:end] if end > 0 else host
        name, colon, port = host.rpartition(":")
        return name if colon and _PORT.fullmatch(f":{port}") else host

    @property
    def port(self) -> str:
        _, colon, port = self.host.rpartition(":")
        return port if colon and _PORT.fullmatch(f":{port}") else ""

    def parameters(self) -> dict[str, list[str]]:
        """The query, without what is wrong in it."""
        found: dict[str, list[str]] = {}
        if self.query.count("&") + 1 > _MAX_PARAMETERS:
            return found
        for part in self.query.split("&"):
            key, _, value = part.partition("=")
            if ";" in part or not part or _bad_escape(key) or _bad_escape(value):
                continue
            found.setdefault(_plain(key.replace("+", " ")), []).append(_plain(value.replace("+", " ")))
        return found

    def __str__(self) -> str:
        text = f"{self.scheme}:" if self.scheme else ""
        if self.opaque:
            text += self.opaque
        else:
            if (self.scheme or self.host or self.user) and not (self.no_host and not self.host and not self.user):
                text += "//" if self.host or self.path or self.user else ""
                text += f"{self.user}@" if self.user else ""
                text += self.host
            text += self.path
        text += f"?{self.query}" if self.asks or self.query else ""
        return text + (f"#{self.fragment}" if self.fragment else "")


def parse_request_uri(text: str) -> None:
    """Look whether the text is a URL or an absolute path. Raises ``UrlError``."""
    _checked(text, text, via_request=True)


def parse_url(text: str) -> Url:
    """The URL, with what follows ``#`` as its fragment. Raises ``UrlError``."""
    rest, _, fragment = text.partition("#")
    found = _checked(rest, rest, via_request=False)
    if problem := _bad_escape(fragment):
        raise UrlError(f"parse {quoted(text)}: {problem}")
    return Url(**{name: getattr(found, name) for name in Url.__slots__ if name != "fragment"}, fragment=fragment)


def _checked(text: str, shown: str, *, via_request: bool) -> Url:
    try:
        return _parse(text, via_request=via_request)
    except UrlError as error:
        raise UrlError(f"parse {quoted(shown)}: {error}") from None


def _parse(text: str, *, via_request: bool) -> Url:
    if any(char < " " or char == "\x7f" for char in text):
        raise UrlError("net/url: invalid control character in URL")
    if not text and via_request:
        raise UrlError("empty url")
    if text == "*":
        return Url(path="*")
    if text.startswith(":"):
        raise UrlError("missing protocol scheme")
    match = _SCHEME.match(text)
    scheme = match[1].lower() if match else ""
    rest = text[match.end() :] if match else text
    asks = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query, asks=asks)
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.split("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user = host = ""
    no_host = False
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, host = _authority(scheme, authority)
    elif scheme and rest.startswith("/"):
        no_host = True
    if problem := _bad_escape(rest):
        raise UrlError(problem)
    return Url(scheme, user, host, _path(rest), "", query, "", no_host, asks)


def _authority(scheme: str, authority: str) -> tuple[str, str]:
    user, _, host = authority.rpartition("@")
    host = _host(scheme, host)
    if not _USER.fullmatch(user):
        raise UrlError("net/url: invalid userinfo")
    if problem := _bad_escape(user):
        raise UrlError(problem)
    return user, host


def _host(scheme: str, host: str) -> str:
    bracket = host.rfind("[")
    if bracket > 0:
        raise UrlError("invalid IP-literal")
    if bracket == 0:
        end = host.rfind("]")
        if end < 0:
            raise UrlError("missing ']' in host")
        _check_port(host[end + 1 :])
        name, zone, rest = host[1:end].partition("%25")
        name = _unescaped_host(name) + (_plain(zone + rest) if zone else "")
        try:
            address, _ = parse_address(name)
        except BadAddressError as error:
            raise UrlError(f"invalid host: {error}") from None
        if address.version == 4:
            raise UrlError("invalid IP-literal")
        return f"[{name}]{host[end + 1 :]}"
    colon = host.find(":")
    if colon >= 0:
        # Only HTTP knows no lists of hosts.
        colon = colon if scheme in ("http", "https") else host.rfind(":")
        _check_port(host[colon:])
    return _unescaped_host(host)


def _check_port(text: str) -> None:
    if not _PORT.fullmatch(text):
        raise UrlError(f"invalid port {quoted(text)} after host")


def _unescaped_host(host: str) -> str:
    for index, char in enumerate(host):
        if char == "%":
            escape = host[index : index + 3]
            if not _ESCAPE.fullmatch(escape) or (int(escape[1], 16) < 8 and escape != "%25"):
                raise UrlError(f"invalid URL escape {quoted(escape)}")
        elif char < "\x80" and char not in _HOST:
            raise UrlError(f"invalid character {quoted(char)} in host name")
    return _plain(host)


def _bad_escape(text: str) -> str:
    place = text.find("%")
    while place >= 0:
        if not _ESCAPE.match(text, place):
            return f"invalid URL escape {quoted(text[place : place + 3])}"
        place = text.find("%", place + 1)
    return ""


def _plain(text: str) -> str:
    return unquote_to_bytes(text).decode(errors="replace")


def _path(text: str) -> str:
    """The path as it was written where that is valid, else escaped anew."""
    if _PATH_VALID.fullmatch(text):
        return text
    return quote_from_bytes(unquote_to_bytes(text), safe=_PATH_SAFE)


class URL(Opaque):
    """A URL."""

    __slots__ = ("url",)
    type_name = "kubernetes.URL"

    def __init__(self, url: Url) -> None:
        self.url = url

    def __str__(self) -> str:
        return str(self.url)

    def equals(self, other: Value) -> bool | Failure:
        return str(self.url) == str(other.url) if isinstance(other, URL) else NO_SUCH_OVERLOAD


def _url(text: str) -> Value:
    try:
        parse_request_uri(text)
        return URL(parse_url(text))
    except UrlError as error:
        return Failure(f"URL parse error during conversion from string: {error}")


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except UrlError:
        return False
    return True


_OF = "kubernetes.URL"

declare(
    Overload("url", f"(string) -> {_OF}", _url, per_character()),
    Overload("isURL", "(string) -> bool", _is_url),
    Overload("getScheme", f"{_OF}.() -> string", lambda value: value.url.scheme, one),
    Overload("getHost", f"{_OF}.() -> string", lambda value: value.url.host, one),
    Overload("getHostname", f"{_OF}.() -> string", lambda value: value.url.hostname, one),
    Overload("getPort", f"{_OF}.() -> string", lambda value: value.url.port, one),
    Overload("getEscapedPath", f"{_OF}.() -> string", lambda value: value.url.path, one),
    Overload(
        "getQuery",
        f"{_OF}.() -> map(string, list(string))",
        lambda value: Map((key, List(values)) for key, values in sorted(value.url.parameters().items())),
        one,
    ),
)
