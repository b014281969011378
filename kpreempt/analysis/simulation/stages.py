"""What of a change comes when: stage by stage, each once what it waits for is there; and how long pods run that end."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

import msgspec

from kpreempt.analysis.simulation.client import Controller
from kpreempt.analysis.simulation.cluster import OwnerKey, owner_key
from kpreempt.model.pod import Pod

# Pods beyond these run on: a Job of a hundred thousand completions is not simulated to its end.
_MOST_ENDINGS = 2000


class Stage(msgspec.Struct, frozen=True, kw_only=True):
    """Controllers that begin together, and plain pods that come with them.

    Where it ``is_awaited``, the next stage comes once all of them are done and their pods that end have ended; else at
    once.
    """

    controllers: Sequence[Controller] = ()
    arriving: Sequence[Pod] = ()
    is_awaited: bool = True


class RunTime(msgspec.Struct, frozen=True):
    """How many seconds a pod runs until it ends well, and whether that ``is_guess``."""

    seconds: float
    is_guess: bool = False


class Stages:
    """The stages of a simulation, and how far it has come."""

    def __init__(self, stages: Sequence[Stage]) -> None:
        self._stages = stages or [Stage()]
        self._at = 0

    @property
    def now(self) -> Stage:
        """The stage that came last."""
        return self._stages[self._at]

    @property
    def everyone(self) -> list[Controller]:
        """The controllers of all stages, in their order."""
        return [controller for stage in self._stages for controller in stage.controllers]

    @property
    def has_more(self) -> bool:
        """Whether a stage is left that has not come."""
        return self._at + 1 < len(self._stages)

    def go_on(self) -> Stage:
        """The next stage comes."""
        self._at += 1
        return self.now

    def held(self) -> Iterator[Controller]:
        """The controllers of stages that have not come."""
        for stage in self._stages[self._at + 1 :]:
            yield from stage.controllers


class Endings:
    """The pods that end by themselves, by what manages them; a plain pod is ``(namespace, "Pod", name)``."""

    def __init__(self, run_times: Mapping[OwnerKey, RunTime]) -> None:
        self._run_times = run_times
        self._left = _MOST_ENDINGS
        self._running: set[str] = set()
        # Who found no room until a pod of somebody else ended, and whose.
        self._waited: dict[str, Pod] = {}

    def of(self, pod: Pod) -> RunTime | None:
        """How long the pod runs; ``None`` for one that runs on."""
        return self._run_times.get(owner_key(pod) or (pod.metadata.namespace, "Pod", pod.metadata.name))

    def begin(self, pod: Pod) -> float | None:
        """A pod runs, and ends after so many seconds; ``None`` where it runs on."""
        run_time = self.of(pod)
        if run_time is None or not self._left:
            return None
        self._left -= 1
        self._running.add(pod.key)
        return run_time.seconds

    def end(self, pod: Pod, waiting: Iterable[Pod], ran: Callable[[str], bool]) -> None:
        """A pod has ended; ``waiting`` have no node then, of which some take the place of others that ``ran``.

        That those waited counts however long it was: they were running.
        """
        self._running.discard(pod.key)
        run_time, owner = self.of(pod), owner_key(pod)
        for each in waiting if run_time is not None else ():
            is_other = owner is None or owner_key(each) != owner
            if is_other and (run_time.is_guess or ran(each.key)):
                self._waited.setdefault(each.key, pod)

    def found_room(self, key: str) -> Pod | None:
        """A pod lands; returns the pod for whose end it waited, if it did and that counts."""
        return self._waited.pop(key, None)

    def is_running(self, key: str) -> bool:
        """Whether a pod is still to end."""
        return key in self._running
