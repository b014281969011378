"""Data that plugins pass between extension points, for one pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.decision_cache import PodCache

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import Integers


class TreeKey:
    """A key of an in-tree plugin. Only the plugin's module has it, so no other plugin can write there."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        """Return upstream's key."""
        return self._name


class CloneError(Exception):
    """A plugin's data could not be cloned; ``key`` is its key, and the cause is the exception that was raised."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class CycleState:
    """Plugin data by key, and the plugins whose filters are skipped.

    State objects without a ``clone`` method are shared by clones, so they must not be changed after they are written.
    ``records_steps`` requests every step of every dry run as evidence, not just for the best candidates;
    ``records_scores`` requests each plugin's scores, not just the totals; without both, no steps are recorded.
    ``records_nodes`` requests the rejection of every node, not just of some, and ``records_odds`` what chance and
    unknown orders could lead to. ``phases`` measures time. ``findings`` has cached results for equivalent pods on the
    cluster's nodes, if there is a cache, and ``scheduling_findings`` those for pods with the same requirements on a
    node. ``places`` are the positions of the feasible nodes in the cluster's list, if they are scored in bulk.
    """

    __slots__ = (
        "_data",
        "_skip_filter_plugins",
        "findings",
        "phases",
        "places",
        "records_nodes",
        "records_odds",
        "records_scores",
        "records_steps",
        "scheduling_findings",
    )

    def __init__(
        self,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        records_odds: bool = True,
        phases: Phases = NO_PHASES,
        findings: PodCache | None = None,
        scheduling_findings: PodCache | None = None,
    ) -> None:
        self.phases = phases
        self.findings = findings
        self.scheduling_findings = scheduling_findings
        self.records_steps = records_steps
        self.records_scores = records_scores
        self.records_nodes = records_nodes
        self.records_odds = records_odds
        self.places: Integers | None = None
        self._data: dict[str | TreeKey, object] = {}
        self._skip_filter_plugins: frozenset[str] = frozenset()

    @property
    def skip_filter_plugins(self) -> frozenset[str]:
        """The plugins whose PreFilter returned Skip."""
        return self._skip_filter_plugins

    def skip_filters(self, plugins: Iterable[str]) -> None:
        """Skip the filters of these plugins."""
        self._skip_filter_plugins = frozenset(plugins)

    def write(self, key: str | TreeKey, state: object) -> None:
        self._data[key] = state

    def read(self, key: str | TreeKey) -> object | None:
        """Return the state under ``key``, or ``None``."""
        return self._data.get(key)

    def clone(self) -> CycleState:
        """Return a copy with independent mutable states. Raises ``CloneError``."""
        copy = CycleState(
            records_steps=self.records_steps,
            records_scores=self.records_scores,
            records_nodes=self.records_nodes,
            records_odds=self.records_odds,
            phases=self.phases,
            findings=self.findings,
            scheduling_findings=self.scheduling_findings,
        )
        for key, state in self._data.items():
            try:
                clone = getattr(state, "clone", None)
                copy._data[key] = state if clone is None else clone()
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                raise CloneError(str(key)) from error
        copy._skip_filter_plugins = self._skip_filter_plugins
        return copy
