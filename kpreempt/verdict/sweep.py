"""The result of a sweep over many clusters: the outcomes per cluster, and the queries that failed."""

from __future__ import annotations

from kpreempt.verdict.base import Record
from kpreempt.verdict.records import API_VERSION


class SweptCluster(Record, frozen=True, kw_only=True):
    """A cluster of the sweep.

    ``outcomes`` counts pods by their worst outcome over all queries and schedulers, ``audits`` counts answers without
    pods by their result. ``victims`` and ``violations`` are sums; ``uncertain`` answers may turn out differently.
    ``failures`` queries have no answer; ``error`` is the reason if the cluster has no answer at all.
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
    error: str = ""


class SweepFailure(Record, frozen=True, kw_only=True):
    """A query that failed; if ``query`` is empty, every query of the cluster failed."""

    cluster: str
    query: str = ""
    algorithm: str = ""
    reason: str
    message: str
    hint: str = ""


class SweepAssumption(Record, frozen=True, kw_only=True):
    """An assumption, and the number of clusters whose answers depend on it."""

    kind: str
    message: str
    clusters: int


class Sweep(Record, frozen=True, kw_only=True):
    """The result of a sweep; ``items`` are its clusters, worst first.

    ``algorithms`` were requested, ``queries`` are ids. ``failures`` and ``assumptions`` list those in most clusters;
    ``num_failures`` counts all failures.
    """

    api_version: str = API_VERSION
    kind: str = "Sweep"
    schema_version: int
    algorithms: list[str] = []
    queries: list[str] = []
    outcomes: dict[str, int] = {}
    audits: dict[str, int] = {}
    answers: int = 0
    uncertain: int = 0
    num_failures: int = 0
    items: list[SweptCluster] = []
    failures: list[SweepFailure] = []
    assumptions: list[SweepAssumption] = []
