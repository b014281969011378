"""A cluster under other names, on which every verdict is the same up to the renaming.

Names, namespaces, labels, taints, images, resources and what else could tell whose cluster it is become tokens, which
sort as the names do. Numbers that labels and taints are compared by stay, and so do the names that every cluster has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.snapshot.decode import Record
from kpreempt.snapshot.kinds import KINDS
from kpreempt.snapshot.least import least
from kpreempt.snapshot.redact import spaces, well_known
from kpreempt.snapshot.redact.spaces import Renamer, public_version
from kpreempt.snapshot.redact.tokens import Names
from kpreempt.snapshot.redact.walk import redacted
from kpreempt.verdict import Assumption

__all__ = ["Redaction"]

_KIND_OF = {kind.record: kind.name for kind in KINDS.values()}


class Redaction:
    """The tokens for all names of a cluster."""

    def __init__(self, cluster: ClusterSnapshot) -> None:
        """Look through the cluster once; takes a pass over all objects."""
        self._names = Names()
        if cluster.pod_groups:
            # The space that comes first decides what the tokens of pods look like.
            self._names.collect(spaces.MEMBER, "")
        renamer = Renamer(cluster, self._names.collect, self._names)
        for kind in KINDS.values():
            for record in getattr(cluster, kind.field):
                redacted(renamer, kind.name, least(record))
        for name in cluster.skipped:
            self._names.collect(spaces.KIND, name)
        self._names.number()
        self._renamer = Renamer(cluster, self._names.token, self._names)

    def record(self, record: Record) -> Record:
        """An object of the cluster under its new names."""
        return redacted(self._renamer, _KIND_OF[type(record)], least(record))

    def pod_key(self, namespace: str, name: str) -> tuple[str, str]:
        """Namespace and name of a pod of the cluster, as they are now."""
        return self._names.token(spaces.NAMESPACE, namespace), self._names.token(spaces.POD, name)

    def version(self, version: str) -> str:
        """A server's version without what its vendor adds."""
        return public_version(version)

    def skipped(self, skipped: Mapping[str, int]) -> dict[str, int]:
        """Counts of the kinds that a cluster was read without."""
        return {self._names.token(spaces.KIND, name): count for name, count in skipped.items()}

    def assumptions(self, assumptions: Iterable[Assumption]) -> list[Assumption]:
        """What was assumed, as far as it can be said: about which kind of object."""
        message = "something was assumed when the cluster was read; a redacted file does not say what"
        return [Assumption(_kind_word(each.subject), "", message, each.kind) for each in assumptions]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Every token, and the name that it stands for."""
        return self._names.pairs()


def _kind_word(subject: str) -> str:
    word = subject.partition(" ")[0]
    return word if word in well_known.KINDS else "cluster"
