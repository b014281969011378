"""Single documents and single values of YAML, such as configurations; little is loaded for them."""

from __future__ import annotations

from typing import Any

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of, read_text


def parse_document(text: str, source: str) -> dict[str, Any]:
    """The one object that a text in YAML or JSON holds, such as a configuration. Raises ``InputError``."""
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        documents = [document for _, document in load_documents(text) if document is not None]
    except YamlError as error:
        raise InputError(error.problem, source=source, line=error.line) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError(
            "holds not one object" if len(documents) == 1 else f"holds {len(documents)} documents, not one",
            source=source,
        )
    return documents[0]


def read_document(path: str) -> dict[str, Any]:
    """The one object of a file. Raises ``InputError``."""
    return parse_document(read_text(path), name_of(path))


def parse_yaml_value(text: str) -> Any:
    """One YAML value as kubectl means it: ``1`` is a number, ``"1"`` and ``1500m`` are texts.

    Raises ``UsageError``.
    """
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        documents = list(load_documents(text))
    except YamlError as error:
        raise UsageError(f'"{text[:80]}": {error.problem}', hint="put the value in quotes") from None
    if len(documents) > 1:
        raise UsageError(f'"{text[:80]}" is more than one value')
    return documents[0][1] if documents else None
