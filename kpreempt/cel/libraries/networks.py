"""Addresses, networks and URLs, like Kubernetes' ``library/ip.go``, ``library/cidr.go`` and ``library/urls.go``.

Texts are parsed like Go's ``net/netip`` and ``net/url`` do.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from ipaddress import IPv4Network as _IPv4Network
from urllib.parse import quote_from_bytes, unquote_to_bytes

from kpreempt.cel.functions import TRAVERSAL, Overload, declare, one, per_character, size_of
from kpreempt.cel.libraries.texts import quoted
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Failure, List, Map, Opaque, Value

Address = IPv4Address | IPv6Address
_DECIMAL = re.compile(r"[0-9]+", re.ASCII)
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]+", re.ASCII)
_MAX_LENGTH = 1000


@dataclass(eq=False)
class IP(Opaque):
    """An address."""

    address: Address
    type_name = "net.IP"

    def equals(self, other: Value) -> bool | Failure:
        return self.address == other.address if isinstance(other, IP) else NO_SUCH_OVERLOAD

    def size(self) -> int:
        return len(self.address.packed)

    def __str__(self) -> str:
        return str(self.address)


@dataclass(eq=False)
class CIDR(Opaque):
    """A network given by an address in it, whose bits beyond the prefix only matter for equality."""

    address: Address
    length: int
    type_name = "net.CIDR"

    @property
    def network(self) -> _IPv4Network | IPv6Network:
        return ip_network((self.address, self.length), strict=False)

    def equals(self, other: Value) -> bool | Failure:
        if not isinstance(other, CIDR):
            return NO_SUCH_OVERLOAD
        return self.address == other.address and self.length == other.length

    def size(self) -> int:
        return math.ceil(self.length / 8)

    def __str__(self) -> str:
        return f"{self.address}/{self.length}"


class BadAddressError(Exception):
    """Text that is not an address; ``str`` is Go's message."""


def parse_address(text: str) -> tuple[Address, str]:
    """Parse an address and its zone. Raises ``BadAddressError``."""
    for char in text[:_MAX_LENGTH]:
        if char == ".":
            return _parse4(text, text), ""
        if char == ":":
            return _parse6(text)
        if char == "%":
            raise BadAddressError(f"ParseAddr({quoted(text)}): missing IPv6 address")
    raise BadAddressError(f"ParseAddr({quoted(text)}): unable to parse IP")


def _bad(text: str, reason: str, at: str = "") -> BadAddressError:
    return BadAddressError(f"ParseAddr({quoted(text)}): {reason}" + (f" (at {quoted(at)})" if at else ""))


def _parse4(text: str, whole: str) -> IPv4Address:
    fields: list[int] = []
    value = digits = 0
    for index, char in enumerate(text):
        if "0" <= char <= "9":
            if digits == 1 and value == 0:
                raise _bad(whole, "IPv4 field has octet with leading zero")
            value, digits = value * 10 + int(char), digits + 1
            if value > 255:
                raise _bad(whole, "IPv4 field has value >255")
        elif char == ".":
            if index in (0, len(text) - 1) or text[index - 1] == ".":
                raise _bad(whole, "IPv4 field must have at least one digit", text[index:])
            if len(fields) == 3:
                raise _bad(whole, "IPv4 address too long")
            fields.append(value)
            value = digits = 0
        else:
            raise _bad(whole, "unexpected character", text[index:])
    if len(fields) < 3:
        raise _bad(whole, "IPv4 address too short")
    return IPv4Address(bytes((*fields, value)))


def _parse6(whole: str) -> tuple[IPv6Address, str]:
    text, percent, zone = whole.partition("%")
    if percent and not zone:
        raise _bad(whole, "zone must be a non-empty string")
    packed = bytearray()
    ellipsis = -1
    if text.startswith("::"):
        ellipsis, text = 0, text[2:]
        if not text:
            return IPv6Address(bytes(16)), zone
    while len(packed) < 16:
        match = _HEXADECIMAL.match(text)
        if match is None:
            raise _bad(whole, "each colon-separated field must have at least one digit", text)
        if match.end() > 4:
            raise _bad(whole, "each group must have 4 or less digits", text)
        if text[match.end() : match.end() + 1] == ".":
            packed += _embedded(text, whole, packed, ellipsis).packed
            text = ""
            break
        packed += int(match[0], 16).to_bytes(2, "big")
        text, doubled = _after_field(text[match.end() :], whole)
        if doubled:
            if ellipsis >= 0:
                raise _bad(whole, "multiple :: in address", f":{text}")
            ellipsis = len(packed)
        if not text:
            break
    if text:
        raise _bad(whole, "trailing garbage after address", text)
    if len(packed) < 16:
        if ellipsis < 0:
            raise _bad(whole, "address string too short")
        packed[ellipsis:ellipsis] = bytes(16 - len(packed))
    elif ellipsis >= 0:
        raise _bad(whole, "the :: must expand to at least one field of zeros")
    return IPv6Address(bytes(packed)), zone


def _after_field(text: str, whole: str) -> tuple[str, bool]:
    """Return the rest after the colons that follow a field, and whether there are two."""
    if not text:
        return "", False
    if text[0] != ":":
        raise _bad(whole, "unexpected character, want colon", text)
    if len(text) == 1:
        raise _bad(whole, "colon must be followed by more characters", text)
    return (text[2:], True) if text[1] == ":" else (text[1:], False)


def _embedded(text: str, whole: str, packed: bytearray, ellipsis: int) -> IPv4Address:
    """Parse the IPv4 address at the end of an IPv6 address."""
    if ellipsis < 0 and len(packed) != 12:
        raise _bad(whole, "embedded IPv4 address must replace the final 2 fields of the address", text)
    if len(packed) + 4 > 16:
        raise _bad(whole, "too many hex fields to fit an embedded IPv4 at the end of the address", text)
    return _parse4(text, whole)


def _ip(text: str) -> Value:
    try:
        address, zone = parse_address(text)
    except BadAddressError as error:
        return Failure(f"IP Address {quoted(text)} parse error during conversion from string: {error}")
    if zone:
        return Failure(f"IP address {quoted(text)} with zone value is not allowed")
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return Failure(f"IPv4-mapped IPv6 address {quoted(text)} is not allowed")
    return IP(address)


def _cidr(text: str) -> Value:
    try:
        found = _prefix(text)
    except BadAddressError as error:
        message = f"network address parse error during conversion from string: {error}"
        return Failure(f"network address parse error during conversion from string: {message}")
    if isinstance(found.address, IPv6Address) and found.address.ipv4_mapped is not None:
        problem = f"IPv4-mapped IPv6 address {quoted(text)} is not allowed"
        return Failure(f"network address parse error during conversion from string: {problem}")
    return found


def _prefix(text: str) -> CIDR:
    def bad(reason: str) -> BadAddressError:
        return BadAddressError(f"netip.ParsePrefix({quoted(text)}): {reason}")

    address_text, slash, bits = text.rpartition("/")
    if not slash:
        raise bad("no '/'")
    try:
        address, zone = parse_address(address_text)
    except BadAddressError as error:
        raise bad(str(error)) from None
    if zone:
        raise bad("IPv6 zones cannot be present in a prefix")
    if not _DECIMAL.fullmatch(bits) or (len(bits) > 1 and bits[0] == "0"):
        raise bad(f"bad bits after slash: {quoted(bits)}")
    length = int(bits[:9])
    if length > address.max_prefixlen:
        raise bad("prefix length out of range")
    return CIDR(address, length)


def _contains_ip(network: CIDR, other: Value) -> Value:
    other = _ip(other) if type(other) is str else other
    if type(other) is not IP:
        # Whatever is wrong with the other one, cel-go reports the network.
        return NO_SUCH_OVERLOAD
    return other.address.version == network.address.version and other.address in network.network


def _contains_cidr(network: CIDR, other: Value) -> Value:
    other = _cidr(other) if type(other) is str else other
    if type(other) is not CIDR:
        return other
    if other.address.version != network.address.version:
        return False
    return network.length <= other.length and other.address in network.network


def _is_global(ip: IP) -> bool:
    address = ip.address
    special = address.is_unspecified or address.is_loopback or address.is_multicast or address.is_link_local
    return not special and address != IPv4Address("255.255.255.255")


def _is_link_local_multicast(ip: IP) -> bool:
    if isinstance(ip.address, IPv4Address):
        return ip.address.packed[:3] == b"\xe0\x00\x00"
    return ip.address.packed[0] == 0xFF and ip.address.packed[1] & 0x0F == 2


def _containing(is_text: bool, is_network: bool, args: Sequence[Value], _result: Value) -> int:
    """Two networks are compared, and strings are parsed first."""
    size = size_of(args[0])
    total = math.ceil(2 * size * TRAVERSAL)
    if is_network:
        total += math.ceil(size * TRAVERSAL) + 1
    return total + (math.ceil(size_of(args[1]) * TRAVERSAL) if is_text else 0)


_READ = per_character()


_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):", re.ASCII)
_PORT = re.compile(r"(?::[0-9]*)?", re.ASCII)
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*", re.ASCII)
_ESCAPE = re.compile(r"%[0-9a-fA-F]{2}", re.ASCII)
_HOST = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.~!$&'()*+,;=:[]<>\"")
_PATH_SAFE = "-_.~$&+,/:;=@"
_PATH_VALID = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%]*", re.ASCII)
_MAX_PARAMETERS = 10_000


class UrlError(Exception):
    """Text that is not a URL; ``str`` is Go's message."""


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL; ``path`` is as written, or as Go would write it."""

    scheme: str = ""
    user: str = ""
    host: str = ""
    path: str = ""
    opaque: str = ""
    query: str = ""
    fragment: str = ""
    no_host: bool = False
    has_bare_query: bool = False

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
        """The query parameters, without invalid ones."""
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
        text += f"?{self.query}" if self.has_bare_query or self.query else ""
        return text + (f"#{self.fragment}" if self.fragment else "")


def parse_request_uri(text: str) -> None:
    """Check that the text is a URL or an absolute path. Raises ``UrlError``."""
    _checked(text, via_request=True)


def parse_url(text: str) -> Url:
    """Parse a URL, with the text after ``#`` as its fragment. Raises ``UrlError``."""
    rest, _, fragment = text.partition("#")
    found = _checked(rest, via_request=False)
    if problem := _bad_escape(fragment):
        raise UrlError(f"parse {quoted(text)}: {problem}")
    return replace(found, fragment=fragment)


def _checked(text: str, *, via_request: bool) -> Url:
    try:
        return _parse(text, via_request=via_request)
    except UrlError as error:
        raise UrlError(f"parse {quoted(text)}: {error}") from None


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
    has_bare_query = rest.endswith("?") and rest.count("?") == 1
    rest, _, query = rest.partition("?")
    if not rest.startswith("/"):
        if scheme:
            return Url(scheme=scheme, opaque=rest, query=query, has_bare_query=has_bare_query)
        if via_request:
            raise UrlError("invalid URI for request")
        if ":" in rest.split("/")[0]:
            raise UrlError("first path segment in URL cannot contain colon")
    user = host = ""
    no_host = False
    if (scheme or (not via_request and not rest.startswith("///"))) and rest.startswith("//"):
        authority, slash, path = rest[2:].partition("/")
        rest = slash + path
        user, _, host = authority.rpartition("@")
        host = _host(scheme, host)
        if not _USER.fullmatch(user):
            raise UrlError("net/url: invalid userinfo")
        if problem := _bad_escape(user):
            raise UrlError(problem)
    elif scheme and rest.startswith("/"):
        no_host = True
    if problem := _bad_escape(rest):
        raise UrlError(problem)
    # The path as written if valid, otherwise escaped again.
    path = rest if _PATH_VALID.fullmatch(rest) else quote_from_bytes(unquote_to_bytes(rest), safe=_PATH_SAFE)
    return Url(scheme, user, host, path, "", query, "", no_host, has_bare_query)


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
        # Only HTTP URLs cannot have a list of hosts.
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


@dataclass(eq=False)
class URL(Opaque):
    """A URL."""

    url: Url
    type_name = "kubernetes.URL"

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


_URL = "kubernetes.URL"

declare(
    Overload("ip", "(string) -> net.IP", _ip, _READ),
    Overload("ip", "net.CIDR.() -> net.IP", lambda cidr: IP(cidr.address), overload_cost=one),
    Overload("family", "net.IP.() -> int", lambda ip: ip.address.version, one),
    Overload(
        "ip.isCanonical",
        "(string) -> bool",
        lambda text: str(found) == text if type(found := _ip(text)) is IP else found,
        per_character(factor=2 * TRAVERSAL),
    ),
    Overload("isIP", "(string) -> bool", lambda text: type(_ip(text)) is IP, _READ),
    Overload("isUnspecified", "net.IP.() -> bool", lambda ip: ip.address.is_unspecified, one),
    Overload("isLoopback", "net.IP.() -> bool", lambda ip: ip.address.is_loopback, one),
    Overload("isLinkLocalMulticast", "net.IP.() -> bool", _is_link_local_multicast, one),
    Overload("isLinkLocalUnicast", "net.IP.() -> bool", lambda ip: ip.address.is_link_local, one),
    Overload("isGlobalUnicast", "net.IP.() -> bool", _is_global, one),
    Overload("string", "(net.IP) -> string", str),
    Overload("cidr", "(string) -> net.CIDR", _cidr, _READ),
    Overload("isCIDR", "(string) -> bool", lambda text: type(_cidr(text)) is CIDR, _READ),
    Overload(
        "containsIP",
        "net.CIDR.(string) -> bool",
        _contains_ip,
        partial(_containing, False, False),
        overload_cost=partial(_containing, True, False),
    ),
    Overload("containsIP", "net.CIDR.(net.IP) -> bool", _contains_ip),
    Overload(
        "containsCIDR",
        "net.CIDR.(string) -> bool",
        _contains_cidr,
        partial(_containing, False, True),
        overload_cost=partial(_containing, True, True),
    ),
    Overload("containsCIDR", "net.CIDR.(net.CIDR) -> bool", _contains_cidr),
    Overload("prefixLength", "net.CIDR.() -> int", lambda cidr: cidr.length, one),
    Overload("masked", "net.CIDR.() -> net.CIDR", lambda cidr: CIDR(cidr.network.network_address, cidr.length), one),
    Overload("string", "(net.CIDR) -> string", str),
    Overload("url", f"(string) -> {_URL}", _url, per_character()),
    Overload("isURL", "(string) -> bool", _is_url),
    Overload("getScheme", f"{_URL}.() -> string", lambda value: value.url.scheme, one),
    Overload("getHost", f"{_URL}.() -> string", lambda value: value.url.host, one),
    Overload("getHostname", f"{_URL}.() -> string", lambda value: value.url.hostname, one),
    Overload("getPort", f"{_URL}.() -> string", lambda value: value.url.port, one),
    Overload("getEscapedPath", f"{_URL}.() -> string", lambda value: value.url.path, one),
    Overload(
        "getQuery",
        f"{_URL}.() -> map(string, list(string))",
        lambda value: Map((key, List(values)) for key, values in sorted(value.url.parameters().items())),
        one,
    ),
)
