"""What the records of the evidence have in common: they are frozen, and their fields are in camel case in JSON."""

from __future__ import annotations

import msgspec


class Record(msgspec.Struct, frozen=True, rename="camel"):
    """Every field is written, unless a record says otherwise."""


class SparseRecord(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """Fields that have their default are not written."""


class UntrackedRecord(msgspec.Struct, frozen=True, rename="camel", gc=False):
    """The garbage collector does not follow it: there are many, and they are in no circle."""
