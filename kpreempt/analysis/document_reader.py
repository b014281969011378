"""Reads parts of an object in plain data, with a clear error if a part has the wrong type."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kpreempt.errors import InputError
from kpreempt.model.documents import mapping_in

Document = dict[str, Any]

# Stands for random parts: hashes, name suffixes, and UIDs.
NEW = "new"
_INT32 = range(-(2**31), 2**31)


def describe(document: Document) -> str:
    """An object's kind and name for messages."""
    metadata = mapping_in(document, "metadata")
    name = _scalar(metadata.get("name")) or _scalar(metadata.get("generateName")) or "without a name"
    namespace = _scalar(metadata.get("namespace"))
    kind = _scalar(document.get("kind")) or "object"
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


def _scalar(value: Any) -> Any:
    """A text or number, or ``None`` for what may be nested too deeply to be shown."""
    return value if isinstance(value, (str, int, float)) else None


class DocumentReader:
    """Reads parts of one document, and raises errors about them."""

    def __init__(self, object_name: str, source: str, line: int) -> None:
        self.source, self.line = source, line
        self._object_name = object_name

    def error(self, problem: str, path: str) -> InputError:
        """An error at a field of the object."""
        return InputError(problem, source=self.source, line=self.line, object_name=self._object_name, path=path)

    def mapping(self, parent: Mapping[str, Any], key: str, path: str = "") -> Document:
        """A mapping below ``parent``; a missing one or null is empty."""
        value = parent.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error("expected a mapping", f"{path}.{key}".lstrip("."))
        return value

    def name(self, metadata: Mapping[str, Any], key: str, default: str = "") -> str:
        """A string of the metadata, or ``default`` if it is missing or empty."""
        value = metadata.get(key) or default
        if not isinstance(value, str):
            raise self.error(f"expected a string, got {value!r}", f"metadata.{key}")
        return value

    def count(self, parent: Mapping[str, Any], key: str, default: int) -> int:
        """A number of pods below ``parent``, at least 0."""
        value = parent.get(key)
        if value is None:
            return default
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self.error(f"expected a non-negative integer, got {value!r}", f"spec.{key}")
        return value

    def text(self, parent: Mapping[str, Any], key: str, path: str) -> str:
        """A string below ``parent``; a missing one or null is empty."""
        value = parent.get(key)
        if value is not None and not isinstance(value, str):
            raise self.error("expected a string", f"{path}.{key}")
        return value or ""

    def texts(self, parent: Mapping[str, Any], key: str, path: str) -> dict[str, str]:
        """A mapping of strings below ``parent``, such as labels; a missing one or null is empty."""
        value = self.mapping(parent, key, path)
        return {name: self.text(value, name, f"{path}.{key}") for name in value}

    def int32(self, parent: Mapping[str, Any], key: str, path: str) -> int | None:
        """A 32-bit integer below ``parent``; ``None`` if it is missing or null."""
        value = parent.get(key)
        if value is None:
            return None
        if not isinstance(value, int) or isinstance(value, bool) or value not in _INT32:
            raise self.error("expected a 32-bit integer", f"{path}.{key}")
        return value

    def mappings(self, parent: Mapping[str, Any], key: str, path: str) -> list[Document]:
        """A list of mappings below ``parent``; a missing one or null is empty."""
        value = parent.get(key)
        if value is None:
            return []
        if not isinstance(value, list) or not all(isinstance(each, dict) for each in value):
            raise self.error("expected a list of mappings", f"{path}.{key}")
        return value
