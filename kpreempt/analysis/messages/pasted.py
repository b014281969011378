"""Events in text that was pasted: the output of kubectl, lines of a scheduler's log, or a bare message.

The tables are those of ``kubectl describe``, ``kubectl get events`` (also with ``-A`` and ``-o wide``) and ``kubectl
events`` (``staging/src/k8s.io/kubectl``: ``pkg/describe``, ``pkg/cmd/events``; ``pkg/printers/internalversion`` of
v1.36.3). Lines that a terminal or a chat has wrapped are put together again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import chain

import msgspec

from kpreempt.analysis.workload_pods import kind_of
from kpreempt.errors import InputError
from kpreempt.model.event import Event, EventSource, ObjectReference

# Longer lines, and messages of more lines, are cut.
_LONGEST_LINE = 40_000
# More events are not from one cluster, which keeps them for an hour.
_MAX_EVENTS = 50_000
_GAP = re.compile(r"\s{9,}")
# What may follow a message in quotes.
_QUOTED_END = re.compile(r"[\"'`]+[)}\]]{0,9}[.,;]?$")
_UNITS = {"y": 31_536_000, "d": 86_400, "h": 3_600, "m": 60, "s": 1}
_AGE = (
    r"(?P<age><unknown>|<invalid>|(?:\d{1,6}(?:ms|[ydhms]))+)(?: ago)?"
    r"(?: \(x(?P<count>\d{1,9})(?: over [^)]{1,40})?\))?"
)
_NAME = r"[\w.:-]{1,253}"
_DESCRIBED = re.compile(rf"\s*(?P<type>Normal|Warning)\s+(?P<reason>\S{{1,128}})\s+{_AGE}(?P<rest>\s.*)")
_LISTED = re.compile(
    rf"\s*(?:(?P<namespace>{_NAME})\s+)?{_AGE}\s+(?P<type>Normal|Warning)\s+(?P<reason>\S{{1,128}})\s+"
    rf"(?P<kind>[A-Za-z.]{{1,253}})/(?P<name>{_NAME})(?P<rest>\s.*)"
)
# The end of a row of ``-o wide``: the age of the first event, the number of events, and the name of the event.
_WIDE_END = re.compile(rf"\s+(?:<unknown>|(?:\d{{1,6}}(?:ms|[ydhms]))+)\s+(?P<count>\d{{1,9}})\s+{_NAME}\s*$")
_COLUMNS = re.compile(r"\s*(?:NAMESPACE\s+)?LAST SEEN\s+TYPE\s+REASON\s+OBJECT\s+(?P<wide>SUBOBJECT)?.*")
_SKIPPED = re.compile(r"\s*(?:Type\s+Reason\s+Age\s+From\s+Message|-[-\s]*)\s*")
_FIELD = re.compile(r"(?P<key>[A-Z][A-Za-z -]{0,40}):(?:\s+(?P<value>.*))?")
_COMPONENT = re.compile(r"(?P<from>[a-z][\w./-]{0,253})(?:, (?P<host>[\w.-]{1,253}))?(?:\s{2,}|\s+(?=\S))")
# What mail programs, chats and terminals put before each line.
_MARGIN = re.compile(r"^\s*[>|│]+ ?")
_MESSAGE = re.compile(
    r"\d{1,9}/\d{1,9} nodes are (?:un)?available|\d{1,9}/\d{1,9} tasks in gang|all nodes are unavailable"
    r"|pod has unbound immediate|persistentvolumeclaim \"|no nodes available to schedule|skip schedule deleting pod"
    r"|(?:error while )?running \"?\w+\"? |[Bb]inding rejected|waiting for scheduling gates|rejected due to timeout"
    r"|pod didn't trigger scale-up|Failed to schedule pod|Scheduling is blocked due to"
)
# A line of a scheduler's log (klog), with the pod and the message in quotes.
_LOGGED, _LOGGED_POD = ' err="', re.compile(r"\bpod=\"(?P<namespace>[\w.-]{1,253})/(?P<name>[\w.-]{1,253})\"")
_CONTROLLER = "-controller"
_NONE = ("", "<none>", "<unset>")


class PastedEvent(msgspec.Struct):
    """An event, and its age in seconds when it was printed, if the text has one.

    ``is_current`` is a state that still lasts, such as a condition; its time is when it began.
    """

    event: Event
    age: int | None = None
    is_current: bool = False


class PastedObject(msgspec.Struct):
    """An object and its events, in the order of the text. A description also has the pod's node and priority."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    node: str = ""
    nominated_node: str = ""
    priority: int | None = None
    events: list[PastedEvent] = []


def parse_text(text: str) -> list[PastedObject]:
    """Find the objects with their events in a text, in its order; empty if there are none.

    Raises ``InputError`` if there are too many.
    """
    return _Tables().read(_lines(text)) or list(_bare_messages(_lines(text)))


def _lines(text: str) -> Iterator[str]:
    """The lines without margins, wide gaps, and spaces at the end."""
    for line in StringIO(text):
        if line == "\n":
            yield ""
            continue
        yield _GAP.sub(" " * 8, _MARGIN.sub("", line[:_LONGEST_LINE])).rstrip()


class _Tables:
    """Reads the outputs of kubectl."""

    def __init__(self) -> None:
        self._objects: dict[tuple[str, str, str], PastedObject] = {}
        # The object that is described, and the event to which the next lines may belong.
        self._described: PastedObject | None = None
        self._parts: list[str] = []
        self._open: PastedEvent | None = None
        self._is_wide = False
        self._reason = ""
        self._number = 0

    def read(self, lines: Iterable[str]) -> list[PastedObject]:
        """The objects that have events, in the order of the text."""
        for line in lines:
            self._read(line)
        self._close()
        return [each for each in self._objects.values() if each.events]

    def _read(self, line: str) -> None:
        if not line:
            self._close()
        elif columns := _COLUMNS.fullmatch(line):
            self._close()
            self._is_wide, self._described = bool(columns["wide"]), None
        elif _SKIPPED.fullmatch(line):
            self._close()
        elif match := _LISTED.fullmatch(line):
            self._add(self._object(_kind(match["kind"]), match["namespace"] or "", match["name"]), match)
        elif match := _DESCRIBED.fullmatch(line):
            self._add(self._described or self._object("", "", ""), match)
        elif (field := _FIELD.fullmatch(line)) and (self._open is None or field["key"] in ("Name", "Events")):
            self._close()
            self._describe(field["key"], (field["value"] or "").strip())
        elif self._open is not None:
            self._parts.append(line.strip())

    def _object(self, kind: str, namespace: str, name: str) -> PastedObject:
        return self._objects.setdefault((kind, namespace, name), PastedObject(kind, namespace, name))

    def _add(self, subject: PastedObject, match: re.Match[str]) -> None:
        self._close()
        rest, times, component, host = match["rest"], int(match["count"] or 0), "", ""
        if "kind" not in match.groupdict():
            rest, component, host = _from(rest)
        elif self._is_wide:
            rest, times, component, host = _wide(rest)
        if not subject.kind and component.endswith(_CONTROLLER):
            subject.kind = kind_of(component.removesuffix(_CONTROLLER))
        event = Event(
            type=match["type"],
            reason=match["reason"],
            involved_object=ObjectReference(subject.kind, subject.namespace, subject.name),
            source=EventSource(component, host),
            count=times,
        )
        self._number += 1
        if self._number > _MAX_EVENTS:
            raise InputError(f"has more than {_MAX_EVENTS:,} events", source="--event")
        self._open, self._parts = PastedEvent(event, _seconds(match["age"])), [rest.strip()]
        subject.events.append(self._open)

    def _close(self) -> None:
        """The message of the last event is complete."""
        if self._open is not None:
            message = " ".join(self._parts)[:_LONGEST_LINE]
            self._open.event = msgspec.structs.replace(self._open.event, message=message)
        self._open, self._parts = None, []

    def _describe(self, key: str, value: str) -> None:
        """Note a field of ``kubectl describe``."""
        if key == "Name":
            self._described, self._reason = PastedObject(name=value), ""
            # The namespace is not known yet.
            self._objects["", f"described {len(self._objects)}", value] = self._described
            return
        described = self._described
        if described is None or value in _NONE:
            return
        match key:
            case "Namespace":
                described.namespace = value
            case "Node":
                described.kind, described.node = "Pod", value.partition("/")[0]
            case "NominatedNodeName":
                described.nominated_node = value
            case "Priority" if value.lstrip("-").isdecimal() and len(value) < len(str(2**63)):
                described.kind, described.priority = "Pod", int(value)
            case "Controlled By" | "QoS Class" | "Service Account" | "Node-Selectors":
                described.kind = described.kind or "Pod"
            case "Reason":
                self._reason = value
            case "Message" if self._reason:
                # The status of a pod that a kubelet rejected or evicted.
                reference = ObjectReference("Pod", described.namespace, described.name)
                source = EventSource("kubelet", described.node)
                event = Event(reason=self._reason, involved_object=reference, message=value, source=source)
                described.events.append(PastedEvent(event))


def _from(rest: str) -> tuple[str, str, str]:
    """Split what follows the age in a description: the message, the component and its host."""
    text = rest.strip()
    match = _COMPONENT.match(text)
    if match is None or (_MESSAGE.match(text) and "  " not in match[0]):
        return text, "", ""
    return text[match.end() :], match["from"], match["host"] or ""


def _wide(rest: str) -> tuple[str, int, str, str]:
    """Split the columns after the object: the message, the number of events, the component and its host."""
    end = _WIDE_END.search(rest)
    text, times = (rest[: end.start()], int(end["count"])) if end else (rest, 0)
    if (columns := text.strip().split(maxsplit=1)) and columns[0].startswith("spec."):
        text = columns[1] if len(columns) > 1 else ""
    message, component, host = _from(text)
    return message, times, component, host


def _kind(text: str) -> str:
    return kind_of(text) or text.partition(".")[0].capitalize()


def _seconds(age: str) -> int | None:
    parts = re.findall(r"(\d+)(ms|[ydhms])", age)
    return sum(int(number) * _UNITS.get(unit, 0) for number, unit in parts) if parts else None


def _bare_messages(lines: Iterable[str]) -> Iterator[PastedObject]:
    """The messages in other text, such as a chat or a log; a paragraph is a message, unless it has several."""
    parts: list[str] = []
    for line in chain(lines, [""]):
        if not line and not parts:
            continue
        logged, end = line.rfind(_LOGGED), line.rfind('"')
        if parts and (not line or logged >= 0 or (_MESSAGE.match(line.strip()) and parts[-1].endswith("."))):
            yield from _bare_message(" ".join(parts))
            parts = []
        if logged >= 0:
            pod = _LOGGED_POD.search(line)
            names = (pod["namespace"], pod["name"]) if pod else ()
            yield from _bare_message(line[logged + len(_LOGGED) : end].replace('\\"', '"'), *names)
        elif line:
            parts.append(line.strip())


def _bare_message(text: str, namespace: str = "", name: str = "") -> Iterator[PastedObject]:
    match = _MESSAGE.search(text[:_LONGEST_LINE])
    if match is not None:
        message = _QUOTED_END.sub("", text[match.start() : _LONGEST_LINE].rstrip())
        is_of_autoscaler = message.startswith("pod didn't trigger")
        reason = "NotTriggerScaleUp" if is_of_autoscaler else "FailedScheduling"
        event = Event(reason=reason, involved_object=ObjectReference("Pod", namespace, name), message=message)
        yield PastedObject("Pod", namespace, name, events=[PastedEvent(event)])
