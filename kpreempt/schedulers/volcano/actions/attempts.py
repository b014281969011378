"""Attempts to find room, as they are written down."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from kpreempt.schedulers.volcano.job import Job
from kpreempt.schedulers.volcano.node import Node
from kpreempt.schedulers.volcano.resources import Resource
from kpreempt.schedulers.volcano.session import Session, Victims
from kpreempt.schedulers.volcano.task import Task
from kpreempt.verdict.volcano import Amounts, Attempt, AttemptOutcome, NodeOutcome, NodeTried, Purpose


class Refused(NamedTuple):
    """Why a node is refused, in the genuine scheduler's words, and what the predicates said of it."""

    message: str
    because: str = ""


# Refusals by node.
Refusals = dict[str, Refused]


class Turn(NamedTuple):
    """A task whose turn it is, and for what."""

    session: Session
    purpose: Purpose
    job: Job
    task: Task

    def ended(
        self,
        outcome: AttemptOutcome,
        *,
        reason: str = "",
        refused: Mapping[str, Refused] | None = None,
        tried: Sequence[NodeTried] = (),
        tied: Sequence[str] = (),
        nearest: NodeTried | None = None,
    ) -> AttemptOutcome:
        """Write down how the turn ended; returns the outcome."""
        refusals = refused or {}
        self.session.recorder.record.attempts.append(
            Attempt(
                purpose=self.purpose,
                queue=self.job.queue,
                job=self.job.uid,
                task=self.task.key,
                outcome=outcome,
                reason=reason,
                refused={name: refusal.message for name, refusal in refusals.items()},
                because={name: refusal.because for name, refusal in refusals.items() if refusal.because},
                nodes=list(tried),
                tied=list(tied) if len(tied) > 1 else [],
                nearest=nearest,
            )
        )
        return outcome


class Trial(NamedTuple):
    """A node that is tried: whom it holds that could be asked to leave, and who of them may."""

    node: Node
    candidates: Sequence[Task]
    victims: Victims
    score: float | None = None

    def room(self) -> Resource:
        """What would be free once all victims are gone; raises ``SchedulerPanicError`` as ``future_idle`` does."""
        free = self.node.future_idle()
        for victim in self.victims.tasks:
            free.add(victim.request)
        return free

    def ended(self, outcome: NodeOutcome, *, evicted: Sequence[str] = (), missing: Amounts | None = None) -> NodeTried:
        """How the node was tried, and what came of it."""
        return NodeTried(
            node=self.node.name,
            outcome=outcome,
            score=self.score,
            candidates=[candidate.key for candidate in self.candidates],
            votes=self.victims.votes,
            deciding_tier=self.victims.deciding_tier,
            victims=[victim.key for victim in self.victims.tasks],
            evicted=list(evicted),
            missing=missing or {},
        )
