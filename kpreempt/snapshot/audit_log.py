"""Audit logs of API servers, one request per line: those that end pods, and those that change nodes."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.audit import AuditLog, AuditRequest
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.sources import read_sources

_REQUEST = msgspec.json.Decoder(AuditRequest)
# Most requests read objects; a line that has none of these words need not be decoded.
_MAY_END_PODS = re.compile(rb'"(?:delete|deletecollection|eviction)"|"resource":\s*"nodes"')
_COMPLETE = "ResponseComplete"
_NODE_CHANGES = ("update", "patch", "delete")


def read_audit_log(paths: Iterable[str], input_limits: InputLimits) -> AuditLog:
    """Read the files, packed or not, as one log. Raises ``InputError`` for a line that is not a request."""
    requests: list[AuditRequest] = []
    times: list[datetime] = []
    for path in paths:
        for source in read_sources(path, None, input_limits):
            if source.error is not None:
                raise source.error
            if source.content is None:
                continue
            first = last = b""
            number = 0
            for number, line in enumerate(_lines(source.content), 1):
                if not line.strip():
                    continue
                first, last = first or line, line
                if _MAY_END_PODS.search(line):
                    request = _decoded(line, source.name, number)
                    if _is_relevant(request):
                        requests.append(request)
            ends = [_decoded(line, source.name, number).at for line in (first, last) if line]
            times += [each for each in ends if each is not None]
    return AuditLog(requests, min(times, default=None), max(times, default=None))


def _lines(content: bytes | mmap.mmap) -> Iterator[bytes]:
    start = 0
    while start < len(content):
        end = content.find(b"\n", start)
        end = len(content) if end < 0 else end
        yield content[start:end]
        start = end + 1


def _decoded(line: bytes, source: str, number: int) -> AuditRequest:
    try:
        found = _REQUEST.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        found = AuditRequest()
    if found.kind != "Event" or not found.verb:
        raise InputError(
            "is not a request of an audit log", source=source, line=number, hint="JSON lines, audit.k8s.io/v1"
        )
    return found


def _is_relevant(request: AuditRequest) -> bool:
    if request.stage != _COMPLETE:
        return False
    is_node_change = request.object_ref.resource == "nodes" and request.verb in _NODE_CHANGES
    return request.is_eviction or request.is_deletion or (is_node_change and not request.object_ref.subresource)
