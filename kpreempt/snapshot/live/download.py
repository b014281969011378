"""Downloads a manifest for ``-f URL``: a GET request without retries, with limits on size, time and redirects."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from urllib.parse import SplitResult, urljoin, urlsplit

import urllib3
from urllib3 import exceptions as http

from kpreempt.errors import InputError
from kpreempt.model.urls import without_secrets
from kpreempt.network.deadlines import DeadlineError, pool_manager, within
from kpreempt.network.proxies import proxy_for
from kpreempt.network.tls import Trust, tls_context
from kpreempt.snapshot.live.failures import failure
from kpreempt.version import __version__

SECONDS = 30.0
MAX_BYTES = 32 * 2**20
_MAX_REDIRECTS = 5
_REDIRECTS = (301, 302, 303, 307, 308)
_CHUNK = 2**16
_SCHEMES = ("https", "http")


def download(
    url: str, environment: Mapping[str, str], *, seconds: float = SECONDS, max_bytes: int = MAX_BYTES
) -> bytes:
    """Return the content of the URL, after a few redirects. ``environment`` may set proxies.

    No credentials are sent, not even those in the URL. Raises ``InputError``.
    """
    try:
        return within(seconds, partial(_download, url, environment, seconds, max_bytes))
    except DeadlineError:
        raise InputError(f"timed out after {seconds:g}s", source=without_secrets(url)) from None


def _download(url: str, environment: Mapping[str, str], seconds: float, max_bytes: int) -> bytes:
    for _ in range(_MAX_REDIRECTS + 1):
        source = without_secrets(url)
        try:
            parts = urlsplit(url)
            is_usable = parts.scheme.lower() in _SCHEMES and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_usable = False
        if not is_usable:
            raise InputError("not a URL with a host", source=source)
        response = _request(parts, environment, seconds, source)
        try:
            if response.status in _REDIRECTS and (place := response.headers.get("location")):
                url = urljoin(url, place)
                if parts.scheme.lower() == "https" and urlsplit(url).scheme.lower() != "https":
                    raise InputError("redirects from https to another scheme, which is not followed", source=source)
                continue
            if response.status != 200:
                raise InputError(
                    f"the server returned {response.status} {response.reason or ''}".rstrip(), source=source
                )
            body = bytearray()
            while chunk := response.read1(_CHUNK, decode_content=True):
                body += chunk
                if len(body) > max_bytes:
                    raise InputError(f"longer than {max_bytes:,} bytes", source=source)
            if body[:256].lstrip().lower().startswith((b"<!doctype", b"<html")):
                raise InputError("an HTML page, not a manifest", source=source, hint="use the URL of the raw file")
            return bytes(body)
        except http.HTTPError as error:
            raise failure(error, source, seconds) from None
        finally:
            response.close()
    raise InputError(f"redirects more than {_MAX_REDIRECTS} times", source=without_secrets(url))


def _request(
    parts: SplitResult, environment: Mapping[str, str], seconds: float, source: str
) -> urllib3.BaseHTTPResponse:
    url = parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()
    tls = tls_context(Trust(), None) if parts.scheme.lower() == "https" else None
    pool = pool_manager(proxy_for(url, "", environment), tls)
    try:
        return pool.request(
            "GET",
            url,
            headers={"User-Agent": f"kpreempt/{__version__}", "Accept-Encoding": "gzip"},
            redirect=False,
            retries=False,
            preload_content=False,
            # Slightly longer than any caller waits.
            timeout=urllib3.Timeout(total=seconds + 1),
        )
    except http.HTTPError as error:
        raise failure(error, source, seconds) from None
