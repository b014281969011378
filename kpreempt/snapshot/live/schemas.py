"""The types of an API server: its OpenAPI documents, of which there is one for each group and version.

Every authenticated user may read them (``system:discovery``). The list of the documents is at ``/openapi/v3``:
``k8s.io/kube-openapi`` v0.0.0-20260317180543 ``pkg/handler3/handler.go``.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import msgspec

from kpreempt.snapshot.live.api import Api
from kpreempt.snapshot.live.failures import ClusterError

_INDEX = "/openapi/v3"


class _Document(msgspec.Struct, frozen=True):
    url: str = msgspec.field(name="serverRelativeURL")


class _Index(msgspec.Struct, frozen=True):
    paths: dict[str, _Document]


def openapi_documents(api: Api, api_versions: Collection[str]) -> dict[str, dict[str, Any]]:
    """Return the documents of groups and versions (``apps/v1``), without those that cannot be read. Never raises."""
    try:
        index = msgspec.json.decode(api.get(_INDEX), type=_Index).paths
    except (ClusterError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return {}
    found = {}
    for each in sorted(set(api_versions)):
        entry = index.get(f"apis/{each}" if "/" in each else f"api/{each}")
        document = None if entry is None else _document(api, entry.url)
        if document is not None:
            found[each] = document
    return found


def _document(api: Api, url: str) -> dict[str, Any] | None:
    parts = urlsplit(url)
    if parts.netloc or not parts.path.startswith(f"{_INDEX}/"):
        return None
    try:
        return msgspec.json.decode(api.get(parts.path, dict(parse_qsl(parts.query))), type=dict[str, Any])
    except (ClusterError, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
