"""Which reader a source's text is for: JSON or YAML, or none because it holds no objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kpreempt.snapshot.batches import Batch
from kpreempt.snapshot.json_text import json_batches
from kpreempt.snapshot.sources import Content, Source

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON_START = re.compile(rb'\s*(?:\{\s*["}]|\[)')
_LOOKED_AT = 2**16
# Up to this size a text that is no JSON is tried as YAML.
_SMALL = 4 * 2**20
_OBJECT_SIGNS = re.compile(
    rb'^(?:- | {0,4})(?:apiVersion|serverVersion):|\A\s*[\[{][^\0]*"(?:apiVersion|serverVersion)"', re.MULTILINE
)


def read_batches(source: Source) -> Iterator[Batch]:
    """The objects of a source. Nothing comes from a found file that holds no objects. Raises ``InputError``."""
    content = source.content
    if content is None or (not source.is_named and not _OBJECT_SIGNS.search(content[:_LOOKED_AT])):
        return
    start: int | None = len(_BYTE_ORDER_MARK) if content[:3] == _BYTE_ORDER_MARK else 0
    if _JSON_START.match(content, start or 0) and not _is_flow_yaml(content):
        position, start = start or 0, None
        for each in json_batches(source.name, content, position, is_named=source.is_named):
            if isinstance(each, int):
                start = each
            else:
                yield each
    if start is not None:
        from kpreempt.snapshot.yaml_text import yaml_batches  # noqa: PLC0415 - PyYAML and rapidyaml take a while

        yield from yaml_batches(source.name, content, start, is_named=source.is_named)


def _is_flow_yaml(content: Content) -> bool:
    """Whether a text that begins like JSON is YAML with brackets: a tag, a comment or a comma too many is in it."""
    if len(content) > _SMALL:
        return False
    try:
        msgspec.json.decode(content, type=msgspec.Raw)
    except (msgspec.DecodeError, RecursionError) as error:
        if "malformed" not in str(error) or "trailing characters" in str(error):
            return False
    else:
        return False
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        return any(True for _ in load_documents(content[:].decode()))
    except (YamlError, UnicodeDecodeError):
        return False
