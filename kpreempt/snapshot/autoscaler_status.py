"""Cluster Autoscaler's status in a ConfigMap: YAML since 1.30, plain text before; kept as JSON.

``clusterstate/utils/status.go`` of ``kubernetes/autoscaler`` 1.36 writes the first form, and
``clusterstate/api/utils.go`` of 1.29 the second.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

import msgspec

from kpreempt.errors import InputError
from kpreempt.model.meta import Time
from kpreempt.model.node import (
    STATUS_ANNOTATION,
    STATUS_KEY,
    AutoscalerStatus,
    BackoffInfo,
    ClusterHealth,
    ClusterWide,
    ConfigMap,
    GroupHealth,
    GroupScaleUp,
    NodeGroupStatus,
)
from kpreempt.snapshot.documents import parse_document

_ENCODER = msgspec.json.Encoder()
# ``2026-11-21 03:04:05.123456789 +0000 UTC``, also with a monotonic clock behind it.
_TIME = re.compile(r"(\d{4}-\d\d-\d\d) (\d\d:\d\d:\d\d)(?:\.\d+)? ([+-]\d\d)(\d\d)\b")
_NAME = "Name:"
_CONDITION = re.compile(r"(Health|ScaleUp):\s+(\S+)(?:\s+\((.*)\))?")
_NUMBER = re.compile(r"\b(cloudProviderTarget|minSize|maxSize)=(\d{1,9})\b")
_OLD_START = "Cluster-autoscaler status at "


def with_json_status(config_map: ConfigMap) -> ConfigMap:
    """Return the ConfigMap with nothing but its status, as JSON; without data if the status is not readable."""
    metadata = config_map.metadata
    updated = metadata.annotations.get(STATUS_ANNOTATION, "")
    found = _parsed(config_map.data.get(STATUS_KEY, ""))
    if found is not None and found.time is None:
        found = msgspec.structs.replace(found, time=_time_in(updated))
    return ConfigMap(
        metadata=msgspec.structs.replace(metadata, annotations={STATUS_ANNOTATION: updated}, labels={}),
        data={STATUS_KEY: _ENCODER.encode(found).decode()} if found is not None else {},
    )


def _parsed(text: str) -> AutoscalerStatus | None:
    if text.startswith(_OLD_START):
        return _of_old_text(text)
    try:
        return msgspec.json.decode(text, type=AutoscalerStatus)
    except msgspec.DecodeError:
        pass
    try:
        document = parse_document(text, STATUS_KEY)
        status = msgspec.convert({**document, "time": None}, AutoscalerStatus, strict=False)
    except (InputError, msgspec.ValidationError):
        return None
    return msgspec.structs.replace(status, time=_time_in(str(document.get("time", ""))))


def _of_old_text(text: str) -> AutoscalerStatus:
    """Read the text of versions before 1.30: a block for the whole cluster, then one per node group."""
    is_healthy, groups = "", list[NodeGroupStatus]()
    for line in map(str.strip, text.splitlines()):
        if line.startswith(_NAME):
            groups.append(NodeGroupStatus(name=line.removeprefix(_NAME).strip()))
        elif condition := _CONDITION.fullmatch(line):
            kind, status, message = condition[1], condition[2], condition[3] or ""
            if not groups:
                is_healthy = status if kind == "Health" else is_healthy
                continue
            numbers = {key: int(number) for key, number in _NUMBER.findall(message)}
            group = groups[-1]
            if kind == "Health":
                sizes = numbers.get("cloudProviderTarget"), numbers.get("minSize"), numbers.get("maxSize")
                group = msgspec.structs.replace(group, health=GroupHealth(status, *sizes))
            else:
                group = msgspec.structs.replace(group, scale_up=GroupScaleUp(status, BackoffInfo()))
            groups[-1] = group
    return AutoscalerStatus(_time_in(text), ClusterWide(ClusterHealth(is_healthy)), groups)


def _time_in(text: str) -> datetime | None:
    """Return the first time in the text, in Go's notation or the API's."""
    match = _TIME.search(text)
    try:
        if match:
            return datetime.fromisoformat(f"{match[1]}T{match[2]}{match[3]}:{match[4]}").astimezone(UTC)
        found: datetime = msgspec.convert(text, Time)
    except (ValueError, OverflowError, msgspec.ValidationError):
        return None
    return found
