"""A ConfigMap that was asked for by name: a scheduler's configuration. Nothing of it is kept or shown."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.connection import Connection


def read_config_map(connection: Connection, namespace: str, name: str) -> dict[str, Any]:
    """The ConfigMap as plain data. Raises ``ClusterError`` and ``InputError``."""
    path = f"/api/v1/namespaces/{quote(namespace, safe='')}/configmaps/{quote(name, safe='')}"
    api = Api(connection)
    try:
        body = api.get(path)
    finally:
        api.close()
    try:
        return msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise InputError("the server's answer is no object", source=f"{connection.server}{path}") from None
