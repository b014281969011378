"""What autoscalers reported in events: about pods, and about node groups, pools, claims and nodes.

Texts of Cluster Autoscaler 1.36 and earlier: ``processors/status/eventing_scale_up_processor.go`` (``ReasonsMessage``
counts node groups by reason), and ``core/scaleup/orchestrator``. Of Karpenter v1.9 and earlier:
``pkg/controllers/provisioning/scheduling/events.go``; errors are joined with semicolons (``multierr``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime

from kpreempt.analysis.queue.order import rejection_of
from kpreempt.model.event import (
    FAILED_SCHEDULING,
    KARPENTER_FAILED,
    NOT_TRIGGER_SCALE_UP,
    Autoscaler,
    Event,
    autoscaler_of,
)
from kpreempt.model.pod import Pod
from kpreempt.verdict.autoscaling import AutoscalerReport, CountedReason

# ``pod didn't trigger scale-up: ``; older versions explain in parentheses that it would not fit on a new node.
_NOT_TRIGGERED = re.compile(r"^pod didn't trigger scale-up(?: \([^)]*\))?: ")
_COUNTED = re.compile(r"(?:^|, )(\d{1,9}) (?=\S)")
_ABOUT_PODS = "Pod"


class ReportedEvents:
    """The events of autoscalers in a cluster, each object's latest last."""

    def __init__(self, events: Iterable[Event]) -> None:
        self.autoscalers: dict[Autoscaler, None] = {}
        self._by_pod: dict[str, list[tuple[Autoscaler, Event]]] = {}
        self._others: list[tuple[Autoscaler, Event]] = []
        for event in events:
            autoscaler = autoscaler_of(event)
            if autoscaler is None:
                continue
            self.autoscalers[autoscaler] = None
            if event.subject.kind == _ABOUT_PODS:
                self._by_pod.setdefault(event.subject.key, []).append((autoscaler, event))
            else:
                self._others.append((autoscaler, event))

    def about_pod(self, pod: Pod) -> list[AutoscalerReport]:
        """The latest report of each autoscaler and reason about the pod, the latest first.

        Earlier pods of the same name are left out.
        """
        metadata, changed = pod.metadata, _last_change(pod)
        latest: dict[tuple[Autoscaler, str], AutoscalerReport] = {}
        for autoscaler, event in self._by_pod.get(pod.key, ()):
            uid, at = event.subject.uid, event.last_time
            is_earlier_pod = (
                uid != metadata.uid
                if uid and metadata.uid
                else at is not None and metadata.creation_timestamp is not None and at < metadata.creation_timestamp
            )
            if is_earlier_pod:
                continue
            is_outdated = at is not None and changed is not None and at < changed
            report = report_of(autoscaler, event, "", is_outdated=is_outdated)
            key = (autoscaler, event.reason)
            if key not in latest or is_later(report, latest[key]):
                latest[key] = report
        return latest_first(latest.values())

    def about_others(self) -> list[AutoscalerReport]:
        """The latest report of each reason about each other object, the latest first."""
        latest: dict[tuple[str, str, str], AutoscalerReport] = {}
        for autoscaler, event in self._others:
            subject = event.subject
            # A ConfigMap stands for Cluster Autoscaler itself; its events differ only in their texts.
            is_own = subject.kind == "ConfigMap"
            about = "" if is_own else f"{subject.kind} {subject.name}"
            report = report_of(autoscaler, event, about)
            key = (event.reason, about, event.text if is_own else "")
            if key not in latest or is_later(report, latest[key]):
                latest[key] = report
        return latest_first(latest.values())


def _last_change(pod: Pod) -> datetime | None:
    """The last known change of the pod: its creation, or when the scheduler first rejected it."""
    rejection = rejection_of(pod)
    times = (pod.metadata.creation_timestamp, rejection.last_transition_time if rejection is not None else None)
    return max((time for time in times if time is not None), default=None)


def is_later(report: AutoscalerReport, than: AutoscalerReport) -> bool:
    """Whether the report is known to be later."""
    return report.at is not None and (than.at is None or report.at > than.at)


def latest_first(reports: Iterable[AutoscalerReport]) -> list[AutoscalerReport]:
    """The reports, the latest first; those without a time come last."""
    return sorted(reports, key=lambda each: (each.at is None, -each.at.timestamp() if each.at is not None else 0.0))


def report_of(autoscaler: Autoscaler, event: Event, about: str, *, is_outdated: bool = False) -> AutoscalerReport:
    """Return what an autoscaler's event says; ``about`` is the object, empty for the pod itself."""
    message = event.text.strip()
    parts: list[str] = []
    if event.reason == FAILED_SCHEDULING:
        parts = [part.strip() for part in message.removeprefix(KARPENTER_FAILED).split(";") if part.strip()]
    return AutoscalerReport(
        autoscaler=autoscaler,
        reason=event.reason,
        message=message,
        at=event.last_time,
        about=about,
        reasons=counted_reasons(message) if event.reason == NOT_TRIGGER_SCALE_UP else [],
        parts=parts,
        is_outdated=is_outdated,
    )


def counted_reasons(message: str) -> list[CountedReason]:
    """The reasons that a message counts, the most frequent first; empty if it has another form."""
    start = _NOT_TRIGGERED.match(message)
    if start is None:
        return []
    text = message[start.end() :]
    numbers = [*_COUNTED.finditer(text)]
    if not numbers or numbers[0].start() != 0:
        return []
    ends = [*(each.start() for each in numbers[1:]), len(text)]
    found = [CountedReason(int(each[1]), text[each.end() : end]) for each, end in zip(numbers, ends, strict=True)]
    return sorted(found, key=lambda each: (-each.groups, each.reason))
