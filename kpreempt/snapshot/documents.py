"""Single documents and single values in YAML, such as configurations, with little to load."""

from __future__ import annotations

from typing import Any

from kpreempt.errors import InputError, UsageError
from kpreempt.files import name_of, read_text


def parse_document(text: str, source: str) -> dict[str, Any]:
    """Parse the only object in a YAML or JSON text, such as a configuration. Raises ``InputError``."""
    from kpreempt.snapshot.yaml_reference import YamlError, load_documents  # noqa: PLC0415 - PyYAML takes a while

    try:
        documents = [document for _, document in load_documents(text) if document is not None]
    except YamlError as error:
        raise InputError(error.problem, source=source, line=error.line) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InputError(
            "expected an object" if len(documents) == 1 else f"expected one document, got {len(documents)}",
            source=source,
        )
    return documents[0]


def read_document(path: str) -> dict[str, Any]:
    """Read the only object in a file. Raises ``InputError``."""
    return parse_document(read_text(path), name_of(path))


def parse_yaml_value(text: str) -> Any:
    """Parse one YAML value like kubectl: ``1`` is a number, ``"1"`` and ``1500m`` are strings.

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
