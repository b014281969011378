"""The base classes of all records of the evidence: frozen, with fields in camel case in JSON."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """Encodes every field, unless a record says otherwise."""


class SparseRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Omits fields that have their default value."""


class UntrackedRecord(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """Not tracked by the garbage collector: these records are numerous and never form cycles."""
