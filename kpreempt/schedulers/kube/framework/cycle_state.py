"""What plugins remember from one extension point to the next, for one pod."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.decision_cache import Findings

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.bulk.pod_table import Integers


class TreeKey:
    """A key of a plugin in the tree. None but its own module has it, so that no other plugin writes there."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        """The key upstream."""
        return self._name


class CloneError(Exception):
    """What a plugin keeps could not be cloned; ``key`` is what it keeps it under, and the cause is what was raised."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class CycleState:
    """Plugin state by key, and the plugins whose filters need not run.

    State objects without a ``clone`` method are shared by clones, so they must not be changed after they are written.
    ``records_steps`` says that every step of every dry run is wanted as evidence, and not just of the best candidates;
    ``records_scores`` that each plugin's scores are, and not just their totals. Without both no steps are sought.
    ``records_nodes`` says that it is wanted of each node why it is refused, and not just for some.
    ``phases`` is told what the time goes to. ``findings`` is what is known of pods like this one on the nodes of the
    cluster, where that is remembered, and ``shape_findings`` of those that ask the same of a node. ``places`` are those
    of the nodes that fit in the cluster's list, where they are rated at once.
    """

    __slots__ = (
        "_data",
        "_skip_filter_plugins",
        "findings",
        "phases",
        "places",
        "records_nodes",
        "records_scores",
        "records_steps",
        "shape_findings",
    )

    def __init__(
        self,
        *,
        records_steps: bool = True,
        records_scores: bool = True,
        records_nodes: bool = True,
        phases: Phases = NO_PHASES,
        findings: Findings | None = None,
        shape_findings: Findings | None = None,
    ) -> None:
        self.phases = phases
        self.findings = findings
        self.shape_findings = shape_findings
        self.records_steps = records_steps
        self.records_scores = records_scores
        self.records_nodes = records_nodes
        self.places: Integers | None = None
        self._data: dict[str | TreeKey, object] = {}
        self._skip_filter_plugins: frozenset[str] = frozenset()

    @property
    def skip_filter_plugins(self) -> frozenset[str]:
        """The plugins whose PreFilter said that their Filter need not run."""
        return self._skip_filter_plugins

    def skip_filters(self, plugins: Iterable[str]) -> None:
        """Say which filters need not run."""
        self._skip_filter_plugins = frozenset(plugins)

    def write(self, key: str | TreeKey, state: object) -> None:
        self._data[key] = state

    def read(self, key: str | TreeKey) -> object | None:
        """The state under ``key``, or ``None``."""
        return self._data.get(key)

    def clone(self) -> CycleState:
        """A copy whose mutable states are independent of this one's. Raises ``CloneError``."""
        copy = CycleState(
            records_steps=self.records_steps,
            records_scores=self.records_scores,
            records_nodes=self.records_nodes,
            phases=self.phases,
            findings=self.findings,
            shape_findings=self.shape_findings,
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
