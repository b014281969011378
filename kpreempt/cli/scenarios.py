"""Scenarios as JSON lines: reading them in bounded memory, and checking what a lenient JSON reader would let pass."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, BinaryIO, Generic, NoReturn, TypeVar

import msgspec

from kpreempt.admission import apply_api_defaults, complete_cluster, fill_priorities
from kpreempt.analysis.algorithms import Scheduler
from kpreempt.cli.clusters import standard_input
from kpreempt.cli.families import family_of
from kpreempt.errors import InputError
from kpreempt.files import open_file
from kpreempt.library.reading import LoadedCluster
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.model.extra_fields import NO_EXTRAS, ExtraFields
from kpreempt.model.pod import Pod
from kpreempt.snapshot.decode import object_decoder
from kpreempt.snapshot.documents import parse_document
from kpreempt.snapshot.load import cluster_from_json, merge_clusters
from kpreempt.verdict import Assumption, AssumptionKind

MAX_LINE_BYTES = 256 * 1024 * 1024
# A line that is so many times as long is a device, or a file of something else.
_MAX_PARTS = 8
_MAX_DIGITS = 400
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Prepared = TypeVar("Prepared")


class Scenario(msgspec.Struct, frozen=True, rename="camel"):
    """One line of a batch: the objects of a cluster, and a pod as the scheduler would see it.

    For Volcano there may be no pod, and ``conf`` is its configuration. ``queued`` says that pending pods wait in the
    scheduler's queue, as they do in a cluster that runs; without a queue the scheduler knows nominated pods by name
    only.
    """

    pod: msgspec.Raw = msgspec.Raw(b"")
    name: str = ""
    objects: list[msgspec.Raw] | None = None
    config: str | None = None
    conf: str | None = None
    feature_gates: dict[str, bool] | None = None
    algorithm: str | None = None
    queued: bool = False
    eviction: msgspec.Raw = msgspec.Raw(b"")

    @property
    def has_pod(self) -> bool:
        """Whether there is a pod."""
        return bool(bytes(self.pod))


class _Named(msgspec.Struct):
    name: str = ""
    algorithm: str | None = None


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """A file of scenarios, or for ``-`` standard input. Raises ``InputError``."""
    if path == "-":
        yield standard_input()
        return
    with open_file(path) as stream:
        yield stream


def source_of(path: str) -> str:
    """What messages call a file of scenarios."""
    return "standard input" if path == "-" else path


def read_lines(stream: BinaryIO, source: str) -> Iterator[tuple[int, bytes | InputError]]:
    """The lines of ``stream`` that are not blank, with their numbers from 1. One that is too long is an error instead.

    Raises ``InputError`` where the stream itself cannot be read.
    """
    number = 0
    try:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                limit = MAX_LINE_BYTES // 2**20
                yield number, InputError(f"the line is longer than {limit} MiB", source=source, line=number)
                if not _has_end(line, stream):
                    raise InputError("the line does not end", source=source, line=number)
                continue
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line.isspace():
                yield number, line
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", source=source) from error


def _has_end(line: bytes, stream: BinaryIO) -> bool:
    """Whether the line that begins so comes to an end, up to which the stream is read then."""
    for _ in range(_MAX_PARTS):
        if not line or line.endswith(b"\n"):
            return True
        line = stream.readline(MAX_LINE_BYTES)
    return False


def decode_scenario(line: bytes, source: str, number: int) -> Scenario:
    """The scenario that a line holds.

    Raises ``InputError`` for anything but one JSON object of that form: also for keys that are given twice, numbers
    that are none, and nesting without end.
    """
    try:
        _STRICT.decode(line.decode())
        family = family_of(msgspec.json.decode(line, type=_Named).algorithm)
        form: type[Scenario] = family.module().SCENARIO if family.answers_scenarios else Scenario
        scenario = msgspec.json.decode(line, type=form)
        if bytes(scenario.eviction):
            raise ValueError("evictions are not scheduled: kpreempt drain answers for the pods of a node")
        if not (scenario.has_pod or family.answers_scenarios):
            raise msgspec.ValidationError("Object missing required field `pod`")
        return scenario
    except UnicodeDecodeError as error:
        problem = f"not UTF-8 (byte {error.start + 1})"
    except json.JSONDecodeError as error:
        problem = f"not JSON: {error.msg} (character {error.pos + 1})"
    except RecursionError:
        problem = "nested too deeply"
    except (ValueError, msgspec.ValidationError) as error:
        problem = str(error).replace("Expected", "expected")
    raise InputError(problem, source=source, line=number)


class Situation(msgspec.Struct, frozen=True):
    """What a scenario asks about: its cluster, its pod if it has one, and what is assumed of both."""

    cluster: ClusterSnapshot
    pod: Pod | None
    assumptions: list[Assumption]
    source: str

    @property
    def required_pod(self) -> Pod:
        """The pod. Raises ``InputError`` where there is none."""
        if self.pod is None:
            raise InputError("Object missing required field `pod`", source=self.source)
        return self.pod


def situation_of(
    scenario: Scenario, source: str, base: LoadedCluster | None, extra_fields: ExtraFields = NO_EXTRAS
) -> Situation:
    """The objects of a scenario laid over ``base`` if there is one, whose cluster it is where there are none; its pod.

    All are as an API server would have them. What plugins have ``extra_fields`` is kept. Raises ``InputError``.
    """
    if base is not None and not scenario.objects:
        cluster, assumptions = base.cluster, base.assumptions
    else:
        cluster = cluster_from_json(scenario.objects or [], source, extra_fields)
        # A line is put to a scheduler that was handed the objects as they stand in it.
        cluster = (
            msgspec.structs.replace(cluster, has_scheduler_order=True)
            if base is None
            else merge_clusters(base.cluster, cluster)
        )
        cluster, found = complete_cluster(cluster)
        # What was found again, now that more is known, takes the place of uncertain assumptions.
        subjects = {(each.subject, each.field) for each in found}
        kept = [
            each
            for each in (base.assumptions if base else [])
            if each.kind is not AssumptionKind.UNCERTAIN or (each.subject, each.field) not in subjects
        ]
        assumptions = [*kept, *found]
    if not scenario.has_pod:
        return Situation(cluster, None, assumptions, source)
    decoded = object_decoder(extra_fields)("Pod", msgspec.json.decode(scenario.pod), source=source)
    alone = ClusterSnapshot(pods=[apply_api_defaults(decoded)], priority_classes=cluster.priority_classes)
    alone, about_pod = fill_priorities(alone)
    return Situation(cluster, alone.pods[0], [*assumptions, *about_pod], source)


def unread_of(extra_fields: ExtraFields, base: LoadedCluster | None) -> list[Assumption]:
    """What a line's plugins want of the base cluster, which was read before the line and without it."""
    if base is None:
        return []
    beyond = extra_fields.beyond(base.extra_fields)
    subjects = [(kind.key, "snapshot") for kind in beyond.kinds]
    if beyond.pod_annotations:
        subjects.append(("Pod", "metadata.annotations"))
    if beyond.pod_conditions:
        subjects.append(("Pod", "status.conditions"))
    asked = "the cluster was read before this line's configuration asked for them"
    message = f"{asked}, so that neither plugins nor extenders see them"
    return [Assumption(subject, field, message) for subject, field in subjects]


class SchedulerCache(Generic[Prepared]):
    """The schedulers of scenarios, and the base cluster made ready for them: kept while scenarios ask for the same."""

    def __init__(self, base: LoadedCluster | None, make: Callable[[Scenario], Prepared]) -> None:
        """``make`` makes what a scenario asks."""
        self.base = base
        self._make = make
        self._kept: tuple[object, Prepared] | None = None
        self._prepared: dict[int, Any] = {}

    def scheduler_for(self, scenario: Scenario) -> Prepared:
        """What ``make`` makes of a scenario, or made of the one before it that asked for the same."""
        asked_for = (scenario.algorithm, scenario.config, scenario.feature_gates, scenario.queued)
        if self._kept is None or self._kept[0] != asked_for:
            self._kept, self._prepared = (asked_for, self._make(scenario)), {}
        return self._kept[1]

    def prepare(self, scheduler: Scheduler, cluster: ClusterSnapshot, /, *, now: datetime, is_queued: bool) -> Any:
        """The cluster made ready for one of the schedulers."""
        if self.base is None or cluster is not self.base.cluster:
            return scheduler.prepare(cluster, now=now, is_queued=is_queued)
        if id(scheduler) not in self._prepared:
            self._prepared[id(scheduler)] = scheduler.prepare(cluster, now=now, is_queued=is_queued)
        return self._prepared[id(scheduler)]


def configuration_of(scenario: Scenario) -> Mapping[str, Any] | None:
    """The scheduler configuration of a scenario as plain data. Raises ``InputError``."""
    # That of a line for Kueue is no text.
    return parse_document(scenario.config, "config") if scenario.config and isinstance(scenario.config, str) else None


def name_of(line: bytes) -> str:
    """The scenario's name even where the rest of the line is bad, or an empty text."""
    try:
        return msgspec.json.decode(line, type=_Named).name
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""


def _pairs(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"the key {key!r} is there twice in one object")
        seen.add(key)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _number(text: str) -> None:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"a number has {len(text)} digits")


# Keeps nothing: it is only there to refuse.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_number, parse_float=_number, strict=True
)
