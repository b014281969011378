"""URLs, as in Kubernetes' ``library/urls.go``."""

from __future__ import annotations

from kpreempt.cel.functions import declare, one, per_character
from kpreempt.cel.libraries.go_urls import Url, UrlError, parse_request_uri, parse_url
from kpreempt.cel.values import NO_SUCH_OVERLOAD, Failure, List, Map, Opaque, Value


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


def _query(value: URL) -> Map:
    return Map((key, List(values)) for key, values in sorted(value.url.parameters().items()))


_OF = "kubernetes.URL"

declare("url", f"(string) -> {_OF}", _url, cost=per_character())
declare("isURL", "(string) -> bool", _is_url)
declare("getScheme", f"{_OF}.() -> string", lambda value: value.url.scheme, cost=one)
declare("getHost", f"{_OF}.() -> string", lambda value: value.url.host, cost=one)
declare("getHostname", f"{_OF}.() -> string", lambda value: value.url.hostname, cost=one)
declare("getPort", f"{_OF}.() -> string", lambda value: value.url.port, cost=one)
declare("getEscapedPath", f"{_OF}.() -> string", lambda value: value.url.path, cost=one)
declare("getQuery", f"{_OF}.() -> map(string, list(string))", _query, cost=one)
