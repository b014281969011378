"""The history of a pod, a node or a budget, from the decisions of a recording and the changes around them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from kpreempt.errors import InputError
from kpreempt.files import name_of
from kpreempt.model.kinds import KINDS
from kpreempt.model.meta import ObjectName, grouped
from kpreempt.model.node import Node
from kpreempt.model.pod import TERMINAL_PHASES
from kpreempt.model.policy import PodDisruptionBudget
from kpreempt.model.terminations import (
    EvidenceSource,
    Termination,
    TerminationCause,
    pod_deleted_by,
    termination_in,
    terminations_of,
)
from kpreempt.snapshot.archives import InputLimits
from kpreempt.snapshot.decode import record_of
from kpreempt.snapshot.kinds import resource_of
from kpreempt.snapshot.recording.changes import Change, ChangeType
from kpreempt.snapshot.recording.pods import PodLine, pod_line
from kpreempt.snapshot.recording.runs import Run, runs_of
from kpreempt.snapshot.recording.segments import object_name_of_line
from kpreempt.verdict.history import History, HistoryEvent, HistoryEventType
from kpreempt.verdict.records import Assumption
from kpreempt.verdict.unread import unreadable_of
from kpreempt.verdict.verify import DecisionKind
from kpreempt.verdict.who_evicted import PodTermination
from kpreempt.verdict.workload import PreemptionsBetween, PriorityInversion

# How long before or after a pod begins to terminate the reason may be reported.
_REPORTED_WITHIN = timedelta(seconds=10)

_NEVER = datetime.min.replace(tzinfo=UTC)

_DECIDED = {
    DecisionKind.BOUND: HistoryEventType.BOUND,
    DecisionKind.NOMINATED: HistoryEventType.NOMINATED,
    DecisionKind.UNSCHEDULABLE: HistoryEventType.UNSCHEDULABLE,
}


# At the same version, a pod is added after the one that it replaces, and what a decision results in comes after it.
_REPLACED, _ADDED, _DECISION, _AFTER = range(4)


def history_of(folder: str, subject: ObjectName) -> History:
    """Return the history of a Pod, Node or PodDisruptionBudget, the oldest first.

    Raises ``InputError``, also if the recording has no such object.
    """
    steps: list[HistoryEvent] = []
    begins: datetime | None = None
    ends: datetime | None = None
    is_known = False
    evictions: list[_Evicted] = []
    assumptions: dict[Assumption, None] = {}
    for run in runs_of(folder):
        if ends is not None:
            steps.append(HistoryEvent(at=ends, type=HistoryEventType.WATCH_GAP, until=run.begins))
        begins, ends = begins or run.begins, run.ends
        header, _ = run.segments[0].header_cluster()
        # Events show what evicted a pod.
        assumptions |= dict.fromkeys(unreadable_of(header, dict.fromkeys((subject.kind, "Pod", "Event"))))
        builder = _JournalBuilder(folder, subject, run)
        steps += builder.steps()
        evictions += builder.evictions()
        is_known |= builder.is_known
    if begins is None or ends is None:
        raise InputError("not a recording", source=name_of(folder), hint="use kpreempt record --to DIR")
    if not is_known:
        words = f"has no {resource_of(KINDS[subject.kind])} {str(subject).partition(' ')[2]}"
        if why := [each for each in assumptions if each.subject == subject.kind]:
            words += f": {why[0].subject}s {why[0].message}"
        raise InputError(words, source=name_of(folder))
    pairs = grouped(evictions, lambda each: (each.preemptor, each.victim))
    preemptions = [
        PreemptionsBetween.of_evictions(preemptor, victim, [each.at for each in found], builder.inversion(found))
        for (preemptor, victim), found in sorted(pairs.items(), key=lambda pair: -len(pair[1]))
    ]
    preemptions = [each for each in preemptions if each.pods > 1 or each.inversion is not None]
    return History(
        subject=str(subject), begins=begins, ends=ends, items=steps, preemptions=preemptions, assumptions=[*assumptions]
    )


class _Evicted(NamedTuple):
    """A pod of the workload ``victim`` that was evicted for one of the workload ``preemptor``."""

    preemptor: str
    victim: str
    at: datetime
    node: str
    by: PodLine


class _JournalBuilder:
    """Processes a run once, tracking the pods, the node or the budget before each change."""

    def __init__(self, folder: str, subject: ObjectName, run: Run) -> None:
        self.is_known = False
        self._folder = folder
        self._subject = subject
        self._run = run
        # With the version and, at the same version, the rank that determine its position among others.
        self._found: list[tuple[int, int, HistoryEvent]] = []
        self._pods: dict[str, PodLine] = {}
        # When pods were created (by UID), if that was seen.
        self._created: dict[str, datetime] = {}
        self._own: Node | PodDisruptionBudget | None = None
        # Events about ends of pods, by pod, with the times at which they were seen.
        self._reports: defaultdict[str, list[tuple[datetime, Termination]]] = defaultdict(list)
        # The last line of each pod that was evicted, or for which pods were; and the workloads of the subject's pods.
        self._lines: dict[str, PodLine] = {}
        self._workloads: set[str] = set()
        self._evicting = {trace.decision.pod for trace in run.traces if trace.decision.victims}
        self._evicting.update(victim for trace in run.traces for victim in trace.decision.victims)
        # By victim and the version at which it was marked.
        self._preemptions = {mark: trace for trace in run.traces for mark in trace.marks.items()}

    def steps(self) -> Iterator[HistoryEvent]:
        """Yield the steps of the run in order."""
        for line in self._run.segments[0].base(InputLimits()):
            named = object_name_of_line(line)
            if named.kind == "Pod":
                self._see(pod := pod_line(line))
                self.is_known |= self._concerns(pod)
            elif (named.kind, *named.key) == self._subject:
                self.is_known = True
                self._own = record_of(KINDS[named.kind], line)
        for change in self._run.changes():
            if change.kind == "Event" and change.what in (ChangeType.ADDED, ChangeType.MODIFIED):
                self._note_event(change)
        for change in self._run.changes():
            if change.kind == "Pod" and change.what in (ChangeType.ADDED, ChangeType.MODIFIED, ChangeType.DELETED):
                self._note_pod(change)
            elif (change.kind, change.namespace, change.name) == self._subject:
                self.is_known = True
                self._note_subject(change)
        for trace in self._run.traces:
            decision = trace.decision
            if self._subject.kind == "Pod":
                is_about = decision.pod == f"{self._subject.namespace}/{self._subject.name}"
            else:
                is_about = self._subject.kind == "Node" and decision.node == self._subject.name
            if is_about:
                before = _written(trace.seen_at - timedelta(microseconds=1))
                step = HistoryEvent(
                    at=trace.seen_at,
                    type=_DECIDED[decision.decision],
                    pod=decision.pod,
                    node=decision.node,
                    message=decision.message,
                    victims=decision.victims,
                    already_evicted=decision.already_evicted,
                    command=self._command("explain", f"pod/{decision.pod.partition('/')[2]}", decision.pod, before),
                )
                self._found.append((trace.version, _DECISION, step))
        self._found.sort(key=lambda each: each[:2])
        # Watches of different kinds are not equally fast: a version is no later than any later version was seen.
        steps: list[HistoryEvent] = []
        for _, _, step in reversed(self._found):
            at = min(step.at, steps[-1].at) if steps else step.at
            steps.append(msgspec.structs.replace(step, at=at))
        yield from reversed(steps)

    def _see(self, pod: PodLine) -> None:
        self._pods[pod.key] = pod
        if pod.key in self._evicting:
            self._lines[pod.key] = pod
        if self._subject.kind != "Node" and self._concerns(pod):
            self._workloads.add(pod.workload)

    def evictions(self) -> Iterator[_Evicted]:
        """Yield the evictions on the node, or by and of the workloads of the subject's pods, after ``steps``."""
        for trace in self._run.traces:
            for victim in trace.decision.victims:
                preemptor, evicted = self._lines.get(trace.decision.pod), self._lines.get(victim)
                if preemptor is None or evicted is None:
                    continue
                found = _Evicted(preemptor.workload, evicted.workload, trace.seen_at, trace.decision.node, preemptor)
                is_on_node = self._subject.kind == "Node" and trace.decision.node == self._subject.name
                if is_on_node or not self._workloads.isdisjoint(found[:2]):
                    yield found

    def inversion(self, evicted: Sequence[_Evicted]) -> PriorityInversion | None:
        """Whether replacements that exist at the end of the run are more important than all preemptors.

        The evictions are those of one workload for another one. Call it after ``steps``.
        """
        since, most = min(each.at for each in evicted), max(each.by.spec.priority for each in evicted)
        replacements = [
            pod
            for pod in self._pods.values()
            if pod.workload == evicted[0].victim
            and pod.spec.priority > most
            and not pod.is_ending
            and self._created.get(pod.metadata.uid, _NEVER) >= since
        ]
        if not replacements:
            return None
        uids = {pod.metadata.uid for pod in self._pods.values()}
        return PriorityInversion(
            preemptor_priority=most,
            priority=min(pod.spec.priority for pod in replacements),
            pods=len(replacements),
            gone_preemptors=sum(each.by.metadata.uid not in uids for each in evicted),
            nodes=sorted({pod.spec.node_name for pod in replacements} & {each.node for each in evicted} - {""}),
        )

    def _concerns(self, pod: PodLine) -> bool:
        """Return whether the pod's events are part of the history."""
        if self._subject.kind == "Pod":
            return pod.key == f"{self._subject.namespace}/{self._subject.name}"
        if self._subject.kind == "Node":
            return pod.spec.node_name == self._subject.name
        selector = self._own.spec.selector if isinstance(self._own, PodDisruptionBudget) else None
        is_near = pod.metadata.namespace == self._subject.namespace
        return is_near and selector is not None and selector.matches(pod.metadata.labels)

    def _command(self, command: str, subject: str, pod: str, at: str = "") -> list[str]:
        when = ["--at", at] if at else []
        return [command, subject, "-n", pod.partition("/")[0], "--snapshot", self._folder, *when]

    def _note_event(self, change: Change) -> None:
        event = record_of(KINDS["Event"], change.object)
        if key := pod_deleted_by(event):
            cause, source = TerminationCause.DELETED_BY_OWNER, EvidenceSource.EVENT
            owner = f"{event.subject.kind} {event.subject.name}"
            found = Termination(cause, source, event.last_time, event.reason, event.text.strip(), detail=owner)
            self._reports[key].append((change.seen, found))
        elif (says := termination_in(event)) is not None:
            self._reports[event.subject.key].append((change.seen, says))

    def _note_pod(self, change: Change) -> None:
        key = f"{change.namespace}/{change.name}"
        before = self._pods.pop(key, None)
        pod = None if change.what is ChangeType.DELETED else pod_line(change.object)
        if pod is not None:
            self._see(pod)
            if before is None or before.metadata.uid != pod.metadata.uid:
                self._created[pod.metadata.uid] = change.seen
        if not any(self._concerns(each) for each in (before, pod) if each is not None):
            return
        self.is_known = True
        if before is not None and pod is not None and before.metadata.uid != pod.metadata.uid:
            self._note_change(change, key, before, None, rank=_REPLACED)
            before = None
        self._note_change(change, key, before, pod)

    def _note_change(
        self, change: Change, key: str, before: PodLine | None, pod: PodLine | None, rank: int = _AFTER
    ) -> None:
        known = pod or before
        assert known is not None
        node = known.spec.node_name
        steps: list[HistoryEvent] = []
        if before is None and (self._subject.kind == "Pod" or node):
            steps.append(HistoryEvent(at=change.seen, type=HistoryEventType.ADDED, pod=key, node=node))
        if pod is not None and pod.is_leaving and not (before is not None and before.is_leaving):
            steps.append(self._terminating(change, key, pod))
        phase = pod.status.phase if pod is not None else ""
        if phase in TERMINAL_PHASES and not (before is not None and before.status.phase in TERMINAL_PHASES):
            steps.append(
                HistoryEvent(at=change.seen, type=HistoryEventType.FINISHED, pod=key, node=node, message=phase)
            )
        if pod is None:
            if before is not None and not before.is_leaving and (key, change.version) in self._preemptions:
                steps.append(self._terminating(change, key, before))
            steps.append(HistoryEvent(at=change.seen, type=HistoryEventType.DELETED, pod=key, node=node))
        for step in steps:
            self._found.append((change.version, _ADDED if step.type is HistoryEventType.ADDED else rank, step))

    def _terminating(self, change: Change, key: str, pod: PodLine) -> HistoryEvent:
        """Return the step in which a pod begins to terminate: for which pod, or why."""
        preemption = self._preemptions.get((key, change.version))
        node = pod.spec.node_name
        if preemption is not None:
            return HistoryEvent(
                at=change.seen,
                type=HistoryEventType.PREEMPTED,
                pod=key,
                node=node,
                preemptor=preemption.decision.pod,
                command=self._command("who-evicted", key.partition("/")[2], key),
            )
        target = pod.condition("DisruptionTarget")
        reason = target.reason if target is not None else ""
        return HistoryEvent(
            at=change.seen,
            type=HistoryEventType.TERMINATING,
            pod=key,
            node=node,
            message=reason,
            termination=self._termination(change, key),
        )

    def _termination(self, change: Change, key: str) -> PodTermination | None:
        """What the pod itself says about its end, or else the events about it around that time."""
        says: list[Termination] = []
        if change.what is not ChangeType.DELETED:
            says += terminations_of(record_of(KINDS["Pod"], change.object))
        says += [each for at, each in self._reports.get(key, ()) if abs(at - change.seen) <= _REPORTED_WITHIN]
        lasting = [each for each in says if not each.cause.ends_container_only]
        return PodTermination.of_texts(lasting) if lasting else None

    def _note_subject(self, change: Change) -> None:
        """Record a change of the node or the budget itself."""
        if change.what is ChangeType.DELETED:
            self._own = None
            self._found.append((change.version, _AFTER, HistoryEvent(at=change.seen, type=HistoryEventType.DELETED)))
            return
        before = self._state()
        self._own = record_of(KINDS[change.kind], change.object)
        after = self._state()
        if before is None:
            step = HistoryEvent(at=change.seen, type=HistoryEventType.ADDED, message=", ".join(after or ()))
            self._found.append((change.version, _AFTER, step))
        elif news := [each for each in after or () if each not in before]:
            command: list[str] = []
            if self._subject.kind == "PodDisruptionBudget":
                where = ["-n", self._subject.namespace, "--snapshot", self._folder]
                command = ["budgets", *where, "--at", _written(change.seen)]
            step = HistoryEvent(at=change.seen, type=HistoryEventType.CHANGED, message=", ".join(news), command=command)
            self._found.append((change.version, _AFTER, step))

    def _state(self) -> list[str] | None:
        """Describe the node or the budget; ``None`` if it does not exist."""
        own = self._own
        if isinstance(own, Node):
            ready = next((each.status for each in own.status.conditions if each.type == "Ready"), "")
            taints = sorted(f"{each.key}:{each.effect}" for each in own.spec.taints)
            return [
                "cordoned" if own.spec.unschedulable else "not cordoned",
                *({"True": ["ready"], "": []}.get(ready, ["not ready"])),
                f"taints {', '.join(taints)}" if taints else "no taints",
            ]
        if own is None:
            return None
        spec, status = own.spec, own.status
        minimum, maximum = spec.min_available, spec.max_unavailable
        rule = f"minAvailable {minimum}" if minimum is not None else f"maxUnavailable {maximum}"
        if status is None:
            return [rule]
        allowed = f"{status.disruptions_allowed} disruptions allowed"
        return [rule, f"{allowed} ({status.current_healthy} healthy, {status.desired_healthy} needed)"]


def _written(time: datetime) -> str:
    return time.isoformat().replace("+00:00", "Z")
