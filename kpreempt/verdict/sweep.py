"""What came out of a sweep over many clusters: how each of them fared, and what could not be answered."""

from __future__ import annotations

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION


class SweptCluster(Record, frozen=True, kw_only=True):
    """A cluster of the sweep.

    ``outcomes`` counts pods by the worst that becomes of each, over all questions and schedulers, ``audits`` answers
    without a single pod by theirs. ``victims`` and ``violations`` are sums; ``uncertain`` answers may come out
    otherwise. ``failures`` questions have no answer; ``failed`` is the reason where the cluster has none at all.
    """

    cluster: str
    source: str = ""
    version: str = ""
    nodes: int | None = None
    pods: int | None = None
    outcomes: dict[str, int] = {}
    audits: dict[str, int] = {}
    victims: int = 0
    violations: int = 0
    uncertain: int = 0
    failures: int = 0
    failed: str = ""


class SweepFailure(Record, frozen=True, kw_only=True):
    """A question that has no answer; without a question it is the whole cluster."""

    cluster: str
    question: str = ""
    algorithm: str = ""
    reason: str
    message: str
    hint: str = ""


class SweepAssumption(Record, frozen=True, kw_only=True):
    """What answers of so many clusters rest on."""

    kind: str
    message: str
    clusters: int


class Sweep(Record, frozen=True, kw_only=True):
    """A sweep as a whole; ``items`` are its clusters, those that fare worst first.

    ``algorithms`` were asked for, ``questions`` by their ids. Of ``failures`` and ``assumptions`` those in most
    clusters are listed; ``num_failures`` counts all failures.
    """

    api_version: str = API_VERSION
    kind: str = "Sweep"
    schema_version: int
    algorithms: list[str] = []
    questions: list[str] = []
    outcomes: dict[str, int] = {}
    audits: dict[str, int] = {}
    answers: int = 0
    uncertain: int = 0
    num_failures: int = 0
    items: list[SweptCluster] = []
    failures: list[SweepFailure] = []
    assumptions: list[SweepAssumption] = []
