"""Extra data that plugins read beyond what every snapshot keeps: complete objects of some kinds, and more about pods.

It is only read and kept if a plugin requests it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce

import msgspec

# Their contents are private, whatever group claims the name.
_NEVER = frozenset({"secret", "secrets", "secretlist", "configmap", "configmaps", "configmaplist"})

_KIND = re.compile(r"[A-Z][A-Za-z0-9]*")
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
_VERSION = re.compile(r"v[0-9][a-z0-9]*")
_PLURAL = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")


class ObjectKind(msgspec.Struct, frozen=True):
    """A kind of which a plugin reads complete objects, as plain data.

    ``group`` is empty for the core group. ``version`` (``v1alpha1``) and ``plural`` determine where a live cluster
    lists the kind; the plural defaults to the kind in lowercase plus an s. For a kind that every snapshot keeps, only
    kind and group matter; for Events, only those in the snapshot are available. Raises ``ValueError`` for invalid
    names, and for Secrets and ConfigMaps, which are never read.
    """

    kind: str
    group: str = ""
    version: str = ""
    plural: str = ""
    is_namespaced: bool = True

    def __post_init__(self) -> None:
        for what, text, syntax in (
            ("kind", self.kind, _KIND),
            ("group", self.group, _GROUP),
            ("version", self.version, _VERSION),
            ("plural", self.plural, _PLURAL),
        ):
            if not syntax.fullmatch(text) and (text or what == "kind"):
                raise ValueError(f"{text!r} is not the {what} of an object")
        if self.kind.lower() in _NEVER or self.plural in _NEVER:
            raise ValueError(f"a {self.kind} cannot be requested: Secrets and ConfigMaps are never read")

    @property
    def key(self) -> str:
        """``Kind.group``, or only the kind in the core group: its key in ``ClusterSnapshot.documents``."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def resource(self) -> str:
        """The kind's name in paths."""
        return self.plural or f"{self.kind.lower()}s"


class ExtraFields(msgspec.Struct, frozen=True):
    """The kinds that are kept completely, and whether pods keep all their annotations and conditions.

    Without ``pod_conditions``, only a few condition types are kept, without their transition times.
    """

    kinds: tuple[ObjectKind, ...] = ()
    pod_annotations: bool = False
    pod_conditions: bool = False

    def __bool__(self) -> bool:
        return bool(self.kinds) or self.pod_annotations or self.pod_conditions

    def __or__(self, other: ExtraFields) -> ExtraFields:
        """Combine both, each kind once; a kind with a version takes precedence, then the first."""
        kinds: dict[str, ObjectKind] = {}
        for kind in (*self.kinds, *other.kinds):
            known = kinds.get(kind.key)
            if known is None or (kind.version and not known.version):
                kinds[kind.key] = kind
        return ExtraFields(
            tuple(kinds.values()),
            self.pod_annotations or other.pod_annotations,
            self.pod_conditions or other.pod_conditions,
        )

    def beyond(self, known: ExtraFields) -> ExtraFields:
        """Return the part of this that is not in ``known``."""
        keys = {kind.key for kind in known.kinds}
        return ExtraFields(
            tuple(kind for kind in self.kinds if kind.key not in keys),
            self.pod_annotations and not known.pod_annotations,
            self.pod_conditions and not known.pod_conditions,
        )


NO_EXTRAS = ExtraFields()


def all_extras(each: Iterable[ExtraFields]) -> ExtraFields:
    """Combine all of them."""
    return reduce(ExtraFields.__or__, each, NO_EXTRAS)
