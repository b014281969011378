"""The controllers of a play: whose turn it is, and whose pods had to go and are to be made again."""

from __future__ import annotations

from collections.abc import Sequence

from kpreempt.analysis.simulation.client import Actor, Stage
from kpreempt.analysis.simulation.cluster import OwnerKey, owner_key
from kpreempt.controllers.actions import SyncError
from kpreempt.controllers.pods import tied_node
from kpreempt.model.pod import Pod
from kpreempt.verdict import Assumption, AssumptionKind

# More steps than any controller takes at one moment; beyond them it goes round.
_MOST_STEPS = 10_000
_GOES_ROUND = "its controller always finds something to do; what it did until then counts"


class Acting:
    """Calls the controllers about whose pods something has happened, in the order in which it did."""

    def __init__(self, actors: Sequence[Actor]) -> None:
        self._actors = {owner: actor for actor in actors for owner in actor.owners}
        # A dictionary keeps the order, so that nothing is up to chance.
        self._called = {id(actor): actor for actor in actors}
        # Those of the called that will get to it.
        self._summoned: set[int] = set()
        self._steps = 0
        self._refused: dict[int, Actor] = {}
        self._lost: dict[OwnerKey, list[Pod]] = {}
        self.assumptions: dict[Assumption, None] = {}

    def of(self, pod: Pod) -> Actor | None:
        """The controller of a pod's owner, if the change is about that."""
        key = owner_key(pod)
        return self._actors.get(key) if key is not None else None

    def call(self, actor: Actor | None) -> None:
        """Something has happened to a pod of the controller's."""
        if actor is not None:
            self._called[id(actor)] = actor

    def call_refused(self, namespace: str) -> None:
        """There is room in the quotas of a namespace again. Who comes first then is a matter of backoffs."""
        for key, actor in list(self._refused.items()):
            if any(owner[0] == namespace for owner in actor.owners):
                del self._refused[key]
                self.call(actor)

    def act(self, stage: Stage) -> None:
        """The controllers act until none of them has anything left to do now."""
        for _ in range(_MOST_STEPS):
            if not self._called:
                return
            self._take_step(next(iter(self._called.values())), stage)
        for actor in self._called.values():
            self._assume(actor, _GOES_ROUND)
        self._called.clear()

    def summoned(self) -> list[Actor]:
        """The controllers that have something to do, and were not told here before; ``step`` is what they then do."""
        found = [actor for key, actor in self._called.items() if key not in self._summoned]
        self._summoned.update(map(id, found))
        return found

    def step(self, actor: Actor, stage: Stage) -> None:
        """One step of a controller that was summoned; it is to be summoned again as long as it finds one to take."""
        self._summoned.discard(id(actor))
        self._steps += 1
        if self._steps > _MOST_STEPS:
            self._assume(actor, _GOES_ROUND)
            self._called.pop(id(actor), None)
            return
        self._take_step(actor, stage)

    def _take_step(self, actor: Actor, stage: Stage) -> None:
        stage.begin()
        deeds, refusals = stage.deeds, stage.refusals
        try:
            more = actor.sync(stage)
            # Whoever is refused and has nothing else to do comes back when there is room.
            is_stuck = stage.refusals > refusals and stage.deeds == deeds
            if stage.refusals > refusals:
                self._refused[id(actor)] = actor
            if not more or is_stuck:
                self._called.pop(id(actor), None)
        except SyncError as error:
            self._called.pop(id(actor), None)
            self._assume(actor, f"its controller does nothing: {error.message}")

    def lose(self, pod: Pod) -> None:
        """A pod of a controller had to go for another."""
        key = owner_key(pod)
        if key is not None:
            self._lost.setdefault(key, []).append(pod)

    def take_lost(self, pod: Pod) -> Pod | None:
        """The pod that had to go and whose place this one takes: of the same name or node, or else the first."""
        key = owner_key(pod)
        lost = self._lost.get(key, []) if key is not None else []
        if not lost:
            return None
        node = tied_node(pod)
        same = [each for each in lost if each.key == pod.key or (node and each.spec.node_name == node)]
        found = same[0] if same else lost[0]
        lost.remove(found)
        return found

    def _assume(self, actor: Actor, message: str) -> None:
        self.assumptions[Assumption(actor.workload, "spec", message, AssumptionKind.UNCERTAIN)] = None
