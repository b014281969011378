"""Scalars of the API, as its decoder reads them from JSON.

Follows ``sigs.k8s.io/json`` v0.0.0-20250730193827 ``internal/golang/encoding/json/decode.go``, and the types in
``k8s.io/apimachinery`` v0.36.3 that decode themselves: ``pkg/api/resource/quantity.go``,
``pkg/util/intstr/intstr.go``, ``pkg/apis/meta/v1/time.go`` and ``micro_time.go``. ``kubectl`` converts YAML to JSON,
and writes ``1.0`` as ``1``, so that whole numbers are integers.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from datetime import date
from functools import partial
from typing import Any

from kpreempt.model.documents import shortened
from kpreempt.model.quantity import quantity


class MismatchError(ValueError):
    """A value that its type does not accept: another ``go_type`` is expected, or there is another ``reason``."""

    def __init__(self, go_type: str = "", reason: str = "") -> None:
        super().__init__(go_type, reason)
        self.go_type = go_type
        self.reason = reason


def of_json_type(value: Any, kind: type, type_name: str) -> Any:
    """Return the value of a JSON type. Raises ``MismatchError`` for another one, with ``type_name`` in the table."""
    if type(value) is not kind:
        raise MismatchError(_go_type(type_name))
    return value


def json_kind(value: Any, go_type: str) -> str:
    """Return what a JSON value is, in the decoder's words; where a number of ``go_type`` is expected, which number."""
    if type(value) in (int, float):
        return f"number {shortened(str(value))}" if go_type.startswith(("int", "float")) else "number"
    return _JSON_KINDS.get(type(value), "value")


_JSON_KINDS = {str: "string", bool: "bool", list: "array", dict: "object"}


def empty_value(type_name: str) -> Any:
    """Return what ``null`` is in a list or a map of the type."""
    return [] if type_name.startswith("[]") else _EMPTY.get(type_name, {})


_EMPTY: Mapping[str, Any] = {
    **dict.fromkeys(("string", "bytes"), ""),
    **dict.fromkeys(("int32", "int64", "number", "int-or-string"), 0),
    **dict.fromkeys(("any", "time", "micro-time")),
    "boolean": False,
    "quantity": "0",
}


def _go_type(type_name: str) -> str:
    """Return ``[]v1.Container`` for ``[]core.v1.Container``."""
    if type_name.startswith("[]"):
        return f"[]{_go_type(type_name[2:])}"
    if type_name.startswith("{}"):
        return f"map[string]{_go_type(type_name[2:])}"
    return _GO_TYPES.get(type_name) or ".".join(type_name.split(".")[-2:])


_GO_TYPES = {
    "any": "interface {}",
    "boolean": "bool",
    "bytes": "[]uint8",
    "int-or-string": "intstr.IntOrString",
    "micro-time": "v1.MicroTime",
    "number": "float64",
    "quantity": "resource.Quantity",
    "time": "v1.Time",
}


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise MismatchError("float64")
    return value  # type: ignore[no-any-return] # checked


def _integer(bits: int, value: Any) -> int:
    is_whole = type(value) is int or (type(value) is float and value.is_integer())
    if not is_whole or not -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
        raise MismatchError(f"int{bits}")
    return int(value)


_int32 = partial(_integer, 32)


def _int_or_string(value: Any) -> int | str:
    return value if isinstance(value, str) else _int32(value)


_BASE64 = re.compile(r"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")


def _bytes(value: Any) -> str:
    if isinstance(value, list) and all(type(each) is int and 0 <= each <= 255 for each in value):
        return b64encode(bytes(value)).decode()
    text: str = of_json_type(value, str, "bytes").replace("\n", "").replace("\r", "")
    if not _BASE64.fullmatch(text):
        raise MismatchError(reason="illegal base64 data")
    return text


# Amounts without digits are zero.
_NO_DIGITS = re.compile(r"[+-]?\.?(?:[numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]+)?")
_QUANTITY_FORM = "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"


def _quantity(value: Any) -> str | float:
    found: str | float = value if type(value) in (int, float) else value.strip() if isinstance(value, str) else ""
    try:
        quantity(str(found))
    except ValueError:
        if found and _NO_DIGITS.fullmatch(str(found)):
            return "0"
        raise MismatchError(reason=f"quantities must match the regular expression {_QUANTITY_FORM}") from None
    return found


# Go also reads hours with one digit, fractions after a comma, and offsets of 24 hours or 60 minutes.
_TIME = (
    r"(\d{4})(-\d\d-\d\d)T(?:[01]?\d|2[0-3]):[0-5]\d:[0-5]\d(?:[.,]\d%s)%s(?:Z|[+-](?:[01]\d|2[0-4]):(?:[0-5]\d|60))"
)
_TIMES = {
    "time": (re.compile(_TIME % ("+", "?"), re.ASCII), "2006-01-02T15:04:05Z07:00"),
    "micro-time": (re.compile(_TIME % ("{6}", ""), re.ASCII), "2006-01-02T15:04:05.000000Z07:00"),
}


def _time(type_name: str, value: Any) -> str:
    text: str = of_json_type(value, str, "string")
    pattern, layout = _TIMES[type_name]
    match = pattern.fullmatch(text)
    if not match or not _is_date(match[1], match[2]):
        raise MismatchError(reason=f'parsing time "{shortened(text)}" as "{layout}"')
    return text


def _is_date(year: str, month_and_day: str) -> bool:
    try:
        # Python has no year 0, which is a leap year.
        date.fromisoformat(f"{'2000' if year == '0000' else year}{month_and_day}")
    except ValueError:
        return False
    return True


# The types in the table that are not structs, lists or maps. Each returns the value, or raises ``MismatchError``.
SCALARS: Mapping[str, Callable[[Any], Any]] = {
    "any": lambda value: value,
    "boolean": lambda value: of_json_type(value, bool, "boolean"),
    "bytes": _bytes,
    "int-or-string": _int_or_string,
    "int32": _int32,
    "int64": partial(_integer, 64),
    "micro-time": partial(_time, "micro-time"),
    "number": _number,
    "quantity": _quantity,
    "string": lambda value: of_json_type(value, str, "string"),
    "time": partial(_time, "time"),
}
