"""What plugins remember from one extension point to the next, for one pod."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.phases import NO_PHASES, Phases
from kpreempt.schedulers.kube.framework.memory import Findings

if TYPE_CHECKING:
    from kpreempt.schedulers.kube.extending import Extending


class CycleState:
    """Plugin state by key, and the plugins that asked to be skipped.

    State objects without a ``clone`` method are shared by clones, so they must not be changed after they are written.
    ``records_steps`` says that every step of every dry run is wanted as evidence, and not just of the best candidates.
    ``phases`` is told what the time goes to. ``findings`` is what is known of pods like this one on the nodes of the
    cluster, where that is remembered. ``extending`` asks the extenders about the pod, where there are any.
    """

    __slots__ = (
        "_data",
        "extending",
        "findings",
        "phases",
        "records_steps",
        "skip_filter_plugins",
        "skip_score_plugins",
    )

    def __init__(
        self, *, records_steps: bool = True, phases: Phases = NO_PHASES, findings: Findings | None = None
    ) -> None:
        self.phases = phases
        self.findings = findings
        self.records_steps = records_steps
        self.extending: Extending | None = None
        self._data: dict[str, object] = {}
        self.skip_filter_plugins: frozenset[str] = frozenset()
        self.skip_score_plugins: frozenset[str] = frozenset()

    def write(self, key: str, state: object) -> None:
        """Keep ``state`` under ``key``."""
        self._data[key] = state

    def read(self, key: str) -> object | None:
        """The state under ``key``, or ``None``."""
        return self._data.get(key)

    def clone(self) -> CycleState:
        """A copy whose mutable states are independent of this one's."""
        copy = CycleState(records_steps=self.records_steps, phases=self.phases, findings=self.findings)
        copy._data = {key: _copied(state) for key, state in self._data.items()}
        copy.skip_filter_plugins = self.skip_filter_plugins
        copy.skip_score_plugins = self.skip_score_plugins
        copy.extending = self.extending
        return copy


def _copied(state: object) -> object:
    clone = getattr(state, "clone", None)
    return state if clone is None else clone()
