"""Decode objects as the API server does, and find what it rejects when it decodes them.

``kubectl`` requests strict decoding (``fieldValidation=Strict``): a field that the object's type does not have in the
server's version is an error, and case counts. Values of another type than the field's are errors in any case. Follows
``sigs.k8s.io/json`` v0.0.0-20250730193827 ``internal/golang/encoding/json/decode.go``. Values of ``RawExtension`` and
other types without a schema are not looked into.

The types are listed in ``api_types.json``, which ``tools/api_types.py`` writes. Only the types of an object are read.
Custom resources are in ``custom_resources``.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pkgutil import get_data
from typing import Any, NamedTuple

import msgspec

from kpreempt.admission.api_values import SCALARS, MismatchError, empty_value, json_kind, of_json_type
from kpreempt.admission.unknown_names import DecodingProblem, unknown, unknown_resources
from kpreempt.admission.validation.problems import Document, Problem
from kpreempt.model.documents import Path, path_text

# The first minor version that validates the pods of StatefulSets.
_STATEFUL_SETS_VALIDATED = 34
# SOPS adds this key to encrypted files, and removes it on decryption.
_ENCRYPTED = frozenset({"core.v1.Secret", "core.v1.ConfigMap"})


class ApiTypes(msgspec.Struct, frozen=True, eq=False):
    """The kinds of the API and their types, as written by ``tools/api_types.py``, which describes them."""

    minors: tuple[int, int]
    kinds: Mapping[str, str]
    types: Mapping[str, msgspec.Raw]
    required: Mapping[str, msgspec.Raw] = {}
    enums: Mapping[str, msgspec.Raw] = {}
    list_keys: Mapping[str, msgspec.Raw] = {}


class Field(NamedTuple):
    """The type of a field, and the minor versions that have it: ``33-``, ``-30``, ``33-35``, or empty for all."""

    type_name: str
    minors: str


@cache
def api_types() -> ApiTypes:
    """Load the table when an object is first decoded."""
    data = get_data(__package__, "api_types.json")
    assert data is not None
    return msgspec.json.decode(data, type=ApiTypes)


@cache
def fields_of(api: ApiTypes, type_name: str) -> Mapping[str, Field]:
    """Return the fields of a type, in any version."""
    fields: dict[str, str] = msgspec.json.decode(api.types[type_name])
    return {name: _field(each) for name, each in fields.items()}


@cache
def required_of(api: ApiTypes, type_name: str, minor: int | None) -> Collection[str]:
    """Return the fields of a type that clients of version 1.``minor`` always send, or of all versions."""
    entries: dict[str, str] = msgspec.json.decode(api.required[type_name]) if type_name in api.required else {}
    return [name for name, minors in entries.items() if is_within(minors, minor) and (minor is not None or not minors)]


@cache
def enums_of(api: ApiTypes, type_name: str, minor: int | None) -> Mapping[str, Collection[str]]:
    """Return the fields of a type that are enums in version 1.``minor``, or in any version, with their values."""
    entries: dict[str, dict[str, str]] = msgspec.json.decode(api.enums[type_name]) if type_name in api.enums else {}
    known = {
        name: {value for value, minors in each.items() if is_within(minors, minor)} for name, each in entries.items()
    }
    return {name: values for name, values in known.items() if values}


def type_of_kind(api: ApiTypes, document: Document) -> Field | None:
    """Return the type of an object, or ``None`` for a kind that is not built in."""
    entry = api.kinds.get(f"{document.get('apiVersion')} {document.get('kind')}")
    return _field(entry) if entry else None


def _field(entry: str) -> Field:
    type_name, _, minors = entry.partition(" ")
    return Field(type_name, minors)


def is_within(minors: str, minor: int | None) -> bool:
    """Return whether ``33-``, ``-30`` or ``33-35`` contains the minor version; ``""`` contains all, ``None`` is any."""
    first, _, last = minors.partition("-")
    return minor is None or int(first or minor) <= minor <= int(last or minor)


def decoded(
    document: Document, minor: int | None = None, published: ApiTypes | None = None
) -> tuple[Document, list[Problem]]:
    """Return an object as decoded by the API server of version 1.``minor``, and why it cannot be, in document order.

    The result has values of the API's types and no ``null``; values with problems are missing from it, or empty in
    lists. Without ``minor``, and for versions that the table does not cover, the fields of all versions are known.
    Kinds that are not built in are returned as they are. ``published`` has the types that the server itself publishes,
    which precede the table's.
    """
    api = api_types() if published is None or type_of_kind(published, document) is None else published
    kind = type_of_kind(api, document)
    if kind is None:
        return document, []
    if minor is not None and not (api.minors[0] <= minor <= api.minors[1] and is_within(kind.minors, minor)):
        minor = None
    is_encrypted = kind.type_name in _ENCRYPTED and isinstance(document.get("sops"), dict)
    if is_encrypted:
        document = {key: value for key, value in document.items() if key != "sops"}
    decoder = _Decoder(api, minor, kind.type_name)
    try:
        result = decoder.struct(document, kind.type_name, ())
    except RecursionError:
        # The API server reads deeper ones.
        return document, []
    if is_encrypted:
        return document, [each for each in decoder.problems if each.message.startswith("unknown")]
    return result, decoder.problems


def decoded_value(value: Any, type_name: str, path: Path, minor: int | None = None) -> tuple[Any, list[Problem]]:
    """Return the value of a type in the table, such as ``meta.v1.ObjectMeta``, like ``decoded``."""
    api = api_types()
    decoder = _Decoder(api, minor if minor is not None and api.minors[0] <= minor <= api.minors[1] else None)
    return decoder.value(value, type_name, path, type_name), decoder.problems


class _Decoder:
    """Decodes one object, and collects its problems."""

    def __init__(self, api: ApiTypes, minor: int | None, kind: str = "") -> None:
        self._api = api
        self._minor = minor
        self._kind = kind
        self.problems: list[Problem] = []

    def _may_have_any_resources(self, path: Path) -> bool:
        is_old = self._minor is None or self._minor < _STATEFUL_SETS_VALIDATED
        return is_old and self._kind == "apps.v1.StatefulSet" and path[:2] == ("spec", "template")

    def struct(self, given: Mapping[str, Any], type_name: str, path: Path) -> dict[str, Any]:
        fields = fields_of(self._api, type_name)
        result = {}
        for key, each in given.items():
            field = fields.get(key)
            at = (*path, key)
            if field is None or not is_within(field.minors, self._minor):
                self.problems.append(unknown("field", at, fields, minors=field.minors if field else ""))
            elif each is not None:
                value = self.value(each, field.type_name, at, type_name)
                if value is not None:
                    result[key] = value
        if not self._may_have_any_resources(path):
            self.problems += unknown_resources(type_name, result, path, self._minor)
        return result

    def value(self, given: Any, type_name: str, path: Path, owner: str) -> Any:
        """Decode a value in a struct of the type ``owner``; ``None`` if it is of the wrong type."""
        try:
            if scalar := SCALARS.get(type_name):
                return scalar(given)
            checked = of_json_type(given, list if type_name.startswith("[]") else dict, type_name)
        except MismatchError as mismatch:
            self.problems.append(_problem(path, given, mismatch, owner))
            return None
        if type_name.startswith("[]"):
            return [self._item(each, type_name[2:], (*path, index), owner) for index, each in enumerate(checked)]
        if type_name.startswith("{}"):
            return {key: self._item(each, type_name[2:], (*path, key), owner) for key, each in checked.items()}
        return self.struct(checked, type_name, path)

    def _item(self, given: Any, type_name: str, path: Path, owner: str) -> Any:
        """Decode an element of a list or a map, in which ``null`` is the empty value of the type."""
        value = None if given is None else self.value(given, type_name, path, owner)
        return empty_value(type_name) if value is None else value


def _problem(path: Path, given: Any, mismatch: MismatchError, owner: str) -> Problem:
    if mismatch.reason:
        return DecodingProblem(path, f"{path_text(path)}: {mismatch.reason}")
    field = f"{owner.rpartition('.')[2]}.{path_text(path)}"
    words = (
        f"cannot unmarshal {json_kind(given, mismatch.go_type)} into Go struct field {field} of type {mismatch.go_type}"
    )
    return DecodingProblem(path, words)
