"""How to reach an extender and which calls it takes, from a scheduler's configuration.

The fields are those of ``Extender`` (``k8s.io/kube-scheduler`` v0.36.3 ``config/v1/types.go``), which are nearly the
same as ``ExtenderConfig`` in the Policy files of 1.8, 1.13 and 1.18 (``api/v1/types.go``). All decode durations to
nanoseconds.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from kpreempt.errors import ConfigurationError

DEFAULT_TIMEOUT_SECONDS = 5.0
_NANOSECONDS = 10**9


class TlsSettings(msgspec.Struct, frozen=True, kw_only=True):
    """TLS settings: trusted authority, server name, and client certificate. Data takes precedence over files (PEM)."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""

    @property
    def has_authority(self) -> bool:
        """Whether a certificate authority is set."""
        return bool(self.ca_data or self.ca_file)

    @property
    def has_certificate(self) -> bool:
        """Whether a client certificate and key are set."""
        return bool(self.cert_data or self.cert_file) and bool(self.key_data or self.key_file)

    def __repr__(self) -> str:
        held = [name for name in ("cert_data", "key_data", "ca_data") if getattr(self, name)]
        files = [f"{name}={value!r}" for name in _FILES if (value := getattr(self, name))]
        parts = [f"insecure={self.insecure}", f"server_name={self.server_name!r}", *files, *(f"{n}=…" for n in held)]
        return f"TlsSettings({', '.join(parts)})"


_FILES = ("cert_file", "key_file", "ca_file")


class ExtenderSettings(msgspec.Struct, frozen=True, kw_only=True):
    """An extender in a configuration. ``index`` is its position there, for messages.

    ``url_prefix`` may contain a user name and password; ``address`` is the same without them. An empty verb means that
    the call is not made. ``http_timeout`` is in seconds for the entire call. ``ignored_resources`` are the
    ``managed_resources`` that the scheduler's own filters skip.
    """

    index: int = 0
    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    bind_verb: str = ""
    weight: int = 0
    enable_https: bool = False
    tls: TlsSettings | None = None
    http_timeout: float = DEFAULT_TIMEOUT_SECONDS
    node_cache_capable: bool = False
    managed_resources: tuple[str, ...] = ()
    ignored_resources: tuple[str, ...] = ()
    ignorable: bool = False

    @property
    def address(self) -> str:
        """The address without possible secrets: user name, password and query."""
        from kpreempt.model.urls import without_secrets  # noqa: PLC0415 - few schedulers have extenders

        return without_secrets(self.url_prefix)

    def url(self, verb: str) -> str:
        """Return the URL of a call."""
        return f"{self.url_prefix.rstrip('/')}/{verb}"

    def shown_url(self, verb: str) -> str:
        """Return the URL of a call, without possible secrets."""
        return f"{self.address.rstrip('/')}/{verb}"

    def __repr__(self) -> str:
        return f"ExtenderSettings({self.index}, {self.address!r}, tls={self.tls!r})"


def read_settings(extenders: Sequence[Mapping[str, Any]]) -> list[ExtenderSettings]:
    """Read the settings of decoded extenders; field names match in any case, as in Policy files.

    Raises ``ConfigurationError`` for values of a wrong type.
    """
    found = []
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        fields = _Fields(path, extender)
        seconds = fields.of("httpTimeout", int, 0) / _NANOSECONDS
        managed = [
            _Fields(f"{path}.managedResources[{number}]", each)
            for number, each in enumerate(fields.of("managedResources", list, []))
        ]
        tls = fields.of("tlsConfig", dict, None)
        settings = ExtenderSettings(
            index=index,
            url_prefix=fields.of("urlPrefix", str, ""),
            filter_verb=fields.of("filterVerb", str, ""),
            preempt_verb=fields.of("preemptVerb", str, ""),
            prioritize_verb=fields.of("prioritizeVerb", str, ""),
            bind_verb=fields.of("bindVerb", str, ""),
            weight=fields.of("weight", int, 0),
            enable_https=fields.of("enableHTTPS", bool, False),
            tls=_read_tls(_Fields(f"{path}.tlsConfig", tls)) if tls is not None else None,
            http_timeout=seconds or DEFAULT_TIMEOUT_SECONDS,
            node_cache_capable=fields.of("nodeCacheCapable", bool, False),
            managed_resources=tuple(each.of("name", str, "") for each in managed),
            ignored_resources=tuple(
                each.of("name", str, "") for each in managed if each.of("ignoredByScheduler", bool, 0)
            ),
            ignorable=fields.of("ignorable", bool, False),
        )
        found.append(settings)
    return found


def with_ignorable_last(extenders: Sequence[ExtenderSettings]) -> list[ExtenderSettings]:
    """Return the extenders in the order in which 1.18 and later call them: ignorable ones come last."""
    return sorted(extenders, key=lambda each: each.ignorable)


def _read_tls(fields: _Fields) -> TlsSettings:
    return TlsSettings(
        insecure=fields.of("insecure", bool, False),
        server_name=fields.of("serverName", str, ""),
        cert_file=fields.of("certFile", str, ""),
        key_file=fields.of("keyFile", str, ""),
        ca_file=fields.of("caFile", str, ""),
        cert_data=fields.data("certData"),
        key_data=fields.data("keyData"),
        ca_data=fields.data("caData"),
    )


class _Fields:
    """The fields of an object by lower-case name; the last of several counts."""

    def __init__(self, path: str, fields: Any) -> None:
        if not isinstance(fields, Mapping):
            raise ConfigurationError(f"{path}: expected an object")
        self._path = path
        self._fields = {str(name).lower(): value for name, value in fields.items()}

    def of(self, name: str, kind: type, default: Any) -> Any:
        """Return a field, or ``default`` if it is missing or null. Errors never show the value: it may be a key."""
        value = self._fields.get(name.lower())
        if value is None:
            return default
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigurationError(f"{self._path}.{name}: expected {_NAMES.get(kind, kind.__name__)}")
        return value

    def data(self, name: str) -> bytes:
        """Return bytes, given as base64 or as a list of numbers."""
        value = self._fields.get(name.lower())
        if value is None:
            return b""
        try:
            if isinstance(value, list):
                return bytes(value)
            # Go's decoder ignores line breaks.
            return base64.b64decode("".join(value.split("\n")).replace("\r", ""), validate=True)
        except (binascii.Error, ValueError, TypeError, AttributeError):
            raise ConfigurationError(f"{self._path}.{name}: expected base64") from None


_NAMES = {str: "a string", int: "an integer", bool: "true or false", list: "a list", dict: "an object"}
