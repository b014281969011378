"""Many decisions within one phase, of which plugins and extenders are told apart all the same."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

from kpreempt.analysis.algorithms import Scheduler
from kpreempt.model.pod import Pod
from kpreempt.phases import NO_PHASES, Phases
from kpreempt.verdict import Verdict


def timed_by_part(scheduler: Scheduler, phases: Phases) -> Scheduler:
    """The same scheduler; what its plugins and extenders take is told to ``phases``, its own phases are not."""
    return scheduler if phases is NO_PHASES else cast(Scheduler, _Timed(scheduler, _Parts(phases)))


class _Parts:
    def __init__(self, phases: Phases) -> None:
        self._phases = phases

    def phase(self, _name: str, /) -> AbstractContextManager[None]:
        return nullcontext()

    def part(self, name: str, /) -> AbstractContextManager[None]:
        return self._phases.part(name)


class _Timed:
    def __init__(self, scheduler: Scheduler, parts: Phases) -> None:
        self._scheduler = scheduler
        self._parts = parts

    def __getattr__(self, name: str) -> Any:
        return getattr(self._scheduler, name)

    def decide(self, prepared: Any, pod: Pod, **options: Any) -> Verdict:
        return self._scheduler.decide(prepared, pod, phases=self._parts, **options)
