"""Texts to objects: JSON (one value, several, one a line) or YAML, known by content, with lists taken apart.

Every object is handed on as JSON, whatever it was written in, so that there is one way to decode it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.decode import Json
from kpreempt.snapshot.sources import Content

SERVER_VERSION = "kpreempt.io/server-version"
TAKEN_AT = "kpreempt.io/taken-at"

# So many objects at a time: for progress to move, and for memory.
_BATCH = 4096

LineOf = Callable[[int], int]


class Batch(msgspec.Struct, frozen=True):
    """Some objects of one source, in order.

    ``kind`` and ``api_version`` are those of objects that do not say theirs, because their list does. ``line_of`` tells
    the line of an object by its index, ``share`` how much of the source has been read. ``version`` and ``taken_at``
    are what the source says of itself.
    """

    source: str
    objects: Sequence[Json]
    line_of: LineOf
    kind: str = ""
    api_version: str = ""
    share: float = 1.0
    version: str = ""
    taken_at: str = ""


class _ServerVersion(msgspec.Struct, frozen=True):
    git_version: str = msgspec.field(name="gitVersion", default="")


class _TopMeta(msgspec.Struct, frozen=True):
    annotations: dict[str, str] | None = None


class TopLevel(msgspec.Struct, frozen=True, rename="camel"):
    """What a top-level value is: a list, an object, or the output of ``kubectl version``."""

    kind: str = ""
    api_version: str = ""
    metadata: _TopMeta | None = None
    items: list[msgspec.Raw] | None = None
    server_version: _ServerVersion | None = None
    client_version: msgspec.Raw | None = None

    @property
    def is_list(self) -> bool:
        """Whether the value is a list of objects."""
        return self.items is not None and self.kind.endswith("List")

    @property
    def is_version(self) -> bool:
        """Whether the value is what ``kubectl version`` prints."""
        return not self.kind and (self.server_version is not None or self.client_version is not None)


TOP_LEVEL = msgspec.json.Decoder(TopLevel)


def batches_of_value(
    name: str, value: Json, line: Callable[[], int], line_of_item: Callable[[TopLevel, int], int], *, is_named: bool
) -> Iterator[Batch]:
    """The objects of one top-level JSON value, which begins on ``line``. Raises ``InputError``.

    A value that is no Kubernetes object is an error in a source that the user named, and passed over in another.
    """
    try:
        top = TOP_LEVEL.decode(value)
    except (msgspec.ValidationError, UnicodeDecodeError) as error:
        if not is_named:
            return
        if " - at " not in str(error):
            found = str(error).rpartition("got ")[2].strip("`")
            problem = f"expected a Kubernetes object, got {'a list' if found == 'array' else f'a bare {found}'}"
            raise InputError(problem, source=name, line=line()) from None
        raise InputError(f"is not a Kubernetes object: {error}", source=name, line=line()) from None
    if top.is_version:
        version = top.server_version.git_version if top.server_version else ""
        yield Batch(name, [], lambda _: line(), version=version)
    elif top.is_list:
        yield from batches_of_list(name, top, lambda index: line_of_item(top, index))
    elif top.kind:
        yield Batch(name, [value], lambda _: line())
    elif is_named:
        raise InputError("is not a Kubernetes object: it has no kind", source=name, line=line())


def batches_of_list(name: str, top: TopLevel, line_of: LineOf) -> Iterator[Batch]:
    """The items of a list, some at a time. The first batch carries what the list says of itself."""
    items = top.items or []
    kind = top.kind.removesuffix("List")
    yield batch_of_header(name, top)
    for start in range(0, len(items), _BATCH):
        yield Batch(
            name,
            items[start : start + _BATCH],
            partial(_shifted, line_of, start),
            kind=kind,
            api_version=top.api_version if kind else "",
            share=start / len(items),
        )


def _shifted(line_of: LineOf, start: int, index: int) -> int:
    return line_of(start + index)


def batch_of_header(name: str, top: TopLevel) -> Batch:
    """What a list says of itself, without objects."""
    annotations = (top.metadata.annotations if top.metadata else None) or {}
    version, taken_at = annotations.get(SERVER_VERSION, ""), annotations.get(TAKEN_AT, "")
    return Batch(name, [], lambda _: 0, share=0.0, version=version, taken_at=taken_at)


def line_at(content: Content | memoryview, offset: int) -> int:
    """The line, from 1, of an offset in a text that may be mapped and large."""
    step = 2**20
    return 1 + sum(bytes(content[at : min(offset, at + step)]).count(b"\n") for at in range(0, offset, step))
