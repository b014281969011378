"""What a recording has of each object: least fields, and of those that a change is compared with the whole document.

What of a document may be written is not known here: whoever records says so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from kpreempt.model.meta import ObjectMeta
from kpreempt.model.pod import Pod
from kpreempt.snapshot.collect import Keeps
from kpreempt.snapshot.decode import Json, Record, decoder_of, parse_json
from kpreempt.snapshot.kinds import KINDS, Kind
from kpreempt.snapshot.least import least
from kpreempt.snapshot.recording.kept import Key
from kpreempt.snapshot.write import line_of, status_of

Document = dict[str, Any]

_ENCODER = msgspec.json.Encoder()
_POD = decoder_of(Pod)


class Named(msgspec.Struct, frozen=True):
    """What is read of an object of a kind of which there are no records."""

    metadata: ObjectMeta = ObjectMeta()


class Line(NamedTuple):
    """The line of an object, and which object that is."""

    kind: str
    key: Key
    text: bytes


class Lines(NamedTuple):
    """Objects whose documents ``keeps`` wants are written as ``kept`` makes them, the others with least fields."""

    keeps: Keeps = lambda _kind, _record: False
    kept: Callable[[Document], Document] = lambda document: document

    def line(self, kind: Kind, record: Record, json: Json, api_version: str) -> bytes:
        """The line of an object that was told as ``json``, as it is served in that version."""
        if kind.name in KINDS and not self.keeps(kind.name, record):
            return line_of(kind, least(record))
        return self.of_document({"apiVersion": api_version, "kind": kind.name, **parse_json(json)}).text

    def of_document(self, document: Document) -> Line:
        """The line of an object whose document is kept."""
        found = self.kept(document)
        metadata = found["metadata"]
        if found["kind"] == "Pod":
            found["status"] = status_of(_POD.decode(_ENCODER.encode(document)))
        if not metadata.get("namespace", "x"):
            found["metadata"] = metadata = {key: each for key, each in metadata.items() if key != "namespace"}
        key = (metadata.get("namespace") or "", metadata["name"])
        return Line(found["kind"], key, _ENCODER.encode(found))
