"""``--redact-map``: the names and times that tokens stand for, in a file for its owner only."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, TextIO

import msgspec

from kpreempt.cli.output import whole_file
from kpreempt.errors import UsageError
from kpreempt.report.escape import printable_json_bytes
from kpreempt.verdict import API_VERSION

if TYPE_CHECKING:
    from kpreempt.snapshot.redact import Redaction

_OWNER_ONLY = 0o600


def check_map(path: str | None, *, redacts: bool) -> None:
    """Raise ``UsageError`` where the option has no file, or nothing is redacted."""
    if path is None:
        return
    if not redacts:
        raise UsageError("--redact-map: nothing is redacted", hint="--redact")
    if path in ("", "-"):
        raise UsageError("--redact-map: a file is expected", hint="--redact-map names.json")


def map_file(path: str | None) -> AbstractContextManager[TextIO | None]:
    """The file, which is there once the block ends well."""
    return whole_file(path, mode=_OWNER_ONLY) if path else nullcontext()


def write_map(file: TextIO | None, redaction: Redaction | None) -> None:
    """Write all tokens, if there is a file for them."""
    if file is None or redaction is None:
        return
    found = {"names": dict(redaction.pairs()), "times": dict(redaction.times())}
    document = {"apiVersion": API_VERSION, "kind": "RedactionMap", **found}
    file.buffer.write(printable_json_bytes(msgspec.json.encode(document)) + b"\n")
