"""Select the proxy for a server, like Go's ``golang.org/x/net/http/httpproxy`` (v0.48)."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from kpreempt.errors import InputError, UsageError

_DEFAULT_PORTS = {"http": 80, "https": 443}
_SCHEMES = ("http", "https")


def proxy_for(server: str, proxy_url: str, environment: Mapping[str, str]) -> str:
    """Return the URL of the proxy for ``server``, or an empty string. The cluster's ``proxy_url`` takes precedence.

    The URL may hold a password. Raises ``InputError`` for a proxy that cannot be used.
    """
    if proxy_url:
        return _checked(proxy_url, "proxy-url")
    name = f"{urlsplit(server).scheme.upper()}_PROXY"
    found = environment.get(name) or environment.get(name.lower()) or ""
    if not found:
        return ""
    # ``NO_PROXY`` and loopback addresses bypass the proxy.
    parts = urlsplit(server)
    host, port = (parts.hostname or "").rstrip("."), parts.port or _DEFAULT_PORTS.get(parts.scheme)
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return ""
    entries = (environment.get("NO_PROXY") or environment.get("no_proxy") or "").split(",")
    if any(_matches(entry.strip().lower(), host, port, address) for entry in entries if entry.strip()):
        return ""
    return _checked(found if "://" in found else f"http://{found}", name)


def _checked(url: str, source: str) -> str:
    try:
        parts = urlsplit(url)
        is_usable, scheme = bool(parts.hostname and (parts.port is None or parts.port)), parts.scheme
    except ValueError:
        is_usable, scheme = False, "http"
    if scheme.startswith("socks"):
        raise InputError("SOCKS proxies are not supported", source=source, hint="use an http:// or https:// proxy")
    if not is_usable or scheme not in _SCHEMES:
        raise UsageError(f"{source} is not a proxy URL", hint="http://proxy.example:3128")
    return url


def _matches(
    entry: str, host: str, port: int | None, address: ipaddress.IPv4Address | ipaddress.IPv6Address | None
) -> bool:
    if entry == "*":
        return True
    if address is not None and "/" in entry:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    if _address(entry.strip("[]")) is None:
        name, colon, requested = entry.rpartition(":")
        if colon and requested.isdecimal():
            if int(requested) != port:
                return False
            entry = name
    if address is not None:
        return _address(entry.strip("[]")) == address
    if entry.startswith("*."):
        entry = entry[1:]
    return host.endswith(entry) if entry.startswith(".") else host == entry or host.endswith(f".{entry}")


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
