"""Texts to objects: JSON (one value, several, or one per line) or YAML, detected by content, with lists split up.

Every object is passed on as JSON, whatever its format, so that there is a single decoder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Protocol

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.decode import Json, parse_json_of
from kpreempt.snapshot.wire_types import shown

SERVER_VERSION = "kpreempt.io/server-version"
TAKEN_AT = "kpreempt.io/taken-at"
SKIPPED = "kpreempt.io/skipped"
ASSUMPTIONS = "kpreempt.io/assumptions"
UNREAD = "kpreempt.io/unread"
LISTED = "kpreempt.io/listed"
KPREEMPT_VERSION = "kpreempt.io/kpreempt-version"

INCOMPLETE = "the file may have been copied incompletely"

# The number of objects per batch, to report progress and to limit memory.
_BATCH = 4096

LineOf = Callable[[int], int]


class Batch(msgspec.Struct, frozen=True):
    """Some objects of one source, in order.

    ``kind`` and ``api_version`` apply to objects that lack them because their list states them. ``line_of`` returns the
    line of an object by its index; ``share`` is how much of the source has been read. ``version``, ``taken_at``,
    ``skipped``, ``assumptions``, ``unread`` and ``listed`` are the source's statements about itself, ``openshift`` is
    the version of OpenShift, and ``is_own`` means that it is a kpreempt dump.
    """

    source: str
    objects: Sequence[Json]
    line_of: LineOf
    kind: str = ""
    api_version: str = ""
    share: float = 1.0
    version: str = ""
    openshift: str = ""
    taken_at: str = ""
    skipped: str = ""
    assumptions: str = ""
    unread: str = ""
    listed: str = ""
    is_own: bool = False


class WithoutKind(Protocol):
    """Handles a value without a kind; ``is_named`` means that the user named the file."""

    def __call__(self, name: str, json: Json, line: int, *, is_named: bool) -> Iterator[Batch]:
        """Yield the objects in it, if any. Raises ``InputError``."""
        ...


# The same for one file.
ReadsWithoutKind = Callable[[str, Json, int], Iterator[Batch]]


class ServerVersion(msgspec.Struct, frozen=True):
    """The version of a server."""

    git_version: str = msgspec.field(name="gitVersion", default="")


class _TopMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, object] | None = None


class TopLevel(msgspec.Struct, frozen=True, rename="camel"):
    """The fields of a top-level value: a list, an object, or the output of ``kubectl version``."""

    kind: str = ""
    api_version: str = ""
    metadata: _TopMeta | None = None
    items: list[msgspec.Raw] | msgspec.UnsetType | None = msgspec.UNSET
    server_version: ServerVersion | None = None
    client_version: dict[str, object] | None = None

    @property
    def is_list(self) -> bool:
        """Whether the value is a list of objects: as in kubectl, ``items`` makes it a list, whatever its kind."""
        return (isinstance(self.items, list) and bool(self.kind)) or (self.items is None and self.kind.endswith("List"))

    @property
    def is_version(self) -> bool:
        """Whether the value is the output of ``kubectl version``."""
        return not self.kind and (self.server_version is not None or self.client_version is not None)


_TOP_FIELDS: dict[str, tuple[str, tuple[type, ...]]] = {
    "kind": ("a string", (str,)),
    "apiVersion": ("a string", (str,)),
    "metadata": ("an object", (dict, type(None))),
    "items": ("a list", (list, type(None))),
    "serverVersion": ("an object", (dict, type(None))),
}
TOP_LEVEL = msgspec.json.Decoder(TopLevel)


def batches_of_value(
    name: str,
    value: Json | TopLevel,
    line: Callable[[], int],
    line_of_item: Callable[[TopLevel, int], int],
    without_kind: ReadsWithoutKind,
) -> Iterator[Batch]:
    """Yield the objects of one top-level value, given as JSON or as a decoded list, which begins on ``line``.

    Raises ``InputError``.
    """
    if isinstance(value, TopLevel):
        yield from batches_of_list(name, value, partial(line_of_item, value))
        return
    try:
        top = TOP_LEVEL.decode(value)
    except (msgspec.ValidationError, UnicodeDecodeError):
        document = parse_json_of(value, name, line())
        kind = document.get("kind") if isinstance(document, dict) else None
        if not isinstance(kind, str) or not kind:
            yield from without_kind(name, value, line())
        elif kind.endswith("List"):
            raise no_kind(document, name, line()) from None
        else:
            # Errors are found, with a better message, when it is decoded as its own type.
            yield Batch(name, [value], lambda _: line())
        return
    if top.is_version:
        version = top.server_version.git_version if top.server_version else ""
        yield Batch(name, [], lambda _: line(), version=version)
    elif top.is_list:
        yield from batches_of_list(name, top, partial(line_of_item, top))
    elif top.kind:
        yield Batch(name, [value], lambda _: line())
    else:
        yield from without_kind(name, value, line())


def fixed_line(line: int) -> LineOf:
    """Return a function for objects of which only the line of their list is known."""
    return lambda _: line


def is_extension(document: Any) -> bool:
    """Return whether a document only has fields ``x-NAME``: by convention, anchors for other documents."""
    return isinstance(document, dict) and bool(document) and all(key.startswith("x-") for key in document)


def no_kind(document: Any, name: str, line: int) -> InputError:
    """Build the error for a value that is not an object, because it has no kind or a field of the wrong type."""
    if not isinstance(document, dict):
        return InputError(f"expected a Kubernetes object, got {shown(document)}", source=name, line=line)
    for field, (expected, kinds) in _TOP_FIELDS.items():
        if field in document and not isinstance(document[field], kinds):
            problem = f"expected {expected}, got {shown(document[field])}"
            return InputError(problem, source=name, line=line, path=field)
    if document.get("kind"):
        return InputError("expected an object", source=name, line=line, path="metadata.annotations")
    hint = INCOMPLETE if "items" in document else ""
    return InputError("not a Kubernetes object: missing kind", source=name, line=line, hint=hint)


def batches_of_list(name: str, top: TopLevel, line_of: LineOf) -> Iterator[Batch]:
    """Yield the items of a list in batches. The first batch has the list's statements about itself."""
    items = top.items or []
    kind = top.kind.removesuffix("List")
    yield batch_of_header(name, top)
    for start in range(0, len(items), _BATCH):
        yield Batch(
            name,
            items[start : start + _BATCH],
            partial(lambda begin, index: line_of(begin + index), start),
            kind=kind,
            api_version=top.api_version if kind else "",
            share=start / len(items),
        )


def list_within(json: Json) -> TopLevel | None:
    """Return the list that an item of a list is, or ``None`` if it only has the same kind."""
    try:
        top = TOP_LEVEL.decode(json)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return None
    # A server's object of that kind may have other items.
    is_list = top.is_list and (top.kind.endswith("List") or all(bytes(item)[:1] == b"{" for item in top.items or ()))
    return top if is_list else None


def batch_of_header(name: str, top: TopLevel) -> Batch:
    """Return a list's statements about itself, without objects."""
    annotations = (top.metadata.annotations if top.metadata else None) or {}
    version, taken_at, skipped, assumptions, unread, listed = (
        str(annotations.get(key) or "") for key in (SERVER_VERSION, TAKEN_AT, SKIPPED, ASSUMPTIONS, UNREAD, LISTED)
    )
    return Batch(
        *(name, [], lambda _: 0),
        share=0.0,
        version=version,
        taken_at=taken_at,
        skipped=skipped,
        assumptions=assumptions,
        unread=unread,
        listed=listed,
        is_own=KPREEMPT_VERSION in annotations,
    )
