"""Verdicts as the published document: ``kind: Verdict``, or a ``VerdictList`` if there are several."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from kpreempt.report.escape import printable_json
from kpreempt.verdict import API_VERSION, Verdict, VerdictList

KIND = "Verdict"


def with_kind(verdict: Verdict) -> Verdict:
    """The verdict with its API version and kind."""
    return msgspec.structs.replace(verdict, api_version=API_VERSION, kind=KIND)


def document_of(verdicts: Sequence[Verdict], *, as_list: bool = False) -> Verdict | VerdictList:
    """The top-level document: the verdict itself, or a list if there is not exactly one or ``as_list`` is set."""
    items = [with_kind(verdict) for verdict in verdicts]
    return items[0] if len(items) == 1 and not as_list else VerdictList(items=items)


def encode_json(record: msgspec.Struct) -> str:
    """The record as JSON on one line, without characters that control a terminal."""
    return printable_json(msgspec.json.encode(record).decode())


def indented(record: msgspec.Struct) -> str:
    """The record as an indented JSON document."""
    return msgspec.json.format(encode_json(record), indent=2) + "\n"
