"""YAML texts to objects."""

from __future__ import annotations

import re
from collections.abc import Iterator

import msgspec

from kpreempt.errors import InputError
from kpreempt.snapshot.batches import Batch, TopLevel, batches_of_value, line_at
from kpreempt.snapshot.sources import Content

_HELM = re.compile(r"\{\{.*\}\}")


def yaml_batches(name: str, content: Content, start: int, *, is_named: bool) -> Iterator[Batch]:
    """The objects of the YAML documents from ``start`` on. Raises ``InputError``."""
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents

    first_line = line_at(content, start) - 1
    text = decode_text(name, content, start)
    try:
        for line, document in load_documents(text):
            if document is None:
                continue
            value = msgspec.json.encode(document)
            at = first_line + line
            yield from batches_of_value(name, value, lambda at=at: at, lambda top, index, at=at: at, is_named=is_named)
    except YamlError as error:
        raise not_yaml(name, text, error.problem, first_line + error.line) from None


def decode_text(name: str, content: Content, start: int) -> str:
    """The text from ``start`` on. Raises ``InputError`` where it is not UTF-8."""
    try:
        return str(memoryview(content)[start:], "utf-8")
    except UnicodeDecodeError as error:
        raise InputError("is not UTF-8", source=name, line=line_at(content, start + error.start)) from None


def not_yaml(name: str, text: str, problem: str, line: int) -> InputError:
    """The error for a text that YAML's grammar or kubectl refuses; a template that was not rendered is told so."""
    if _HELM.search(text):
        hint = "helm template CHART, and give its output"
        return InputError("is a template that has not been rendered", source=name, line=line, hint=hint)
    return InputError(problem, source=name, line=line)
