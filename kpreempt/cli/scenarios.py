"""Scenarios as JSON lines: reading them in bounded memory, and rejecting mistakes that lenient JSON readers accept."""

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
# A line this many times longer than the limit is from a device, or from the wrong kind of file.
_MAX_PARTS = 8
_MAX_DIGITS = 400
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Prepared = TypeVar("Prepared")


class Scenario(msgspec.Struct, frozen=True, rename="camel"):
    """A line of a batch: the objects of a cluster, and a pod as the scheduler would see it.

    For Volcano the pod is optional, and ``conf`` is its configuration. ``queued`` means that pending pods wait in the
    scheduler's queue, as in a running cluster; without a queue, the scheduler only knows the names of nominated pods.
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
        """Whether the scenario has a pod."""
        return bool(bytes(self.pod))


class _ScenarioHeader(msgspec.Struct):
    name: str = ""
    algorithm: str | None = None


@contextmanager
def opened(path: str) -> Iterator[BinaryIO]:
    """Open a file of scenarios, or standard input for ``-``. Raises ``InputError``."""
    if path == "-":
        yield standard_input()
        return
    with open_file(path) as stream:
        yield stream


def source_of(path: str) -> str:
    """Return the name of a scenario file for messages."""
    return "standard input" if path == "-" else path


def read_lines(stream: BinaryIO, source: str) -> Iterator[tuple[int, bytes | InputError]]:
    """Yield the non-blank lines of ``stream`` with their numbers, from 1; a line that is too long becomes an error.

    Raises ``InputError`` if the stream cannot be read.
    """
    number = 0
    try:
        while line := stream.readline(MAX_LINE_BYTES + 1):
            number += 1
            if len(line) > MAX_LINE_BYTES:
                limit = MAX_LINE_BYTES // 2**20
                yield number, InputError(f"line longer than {limit} MiB", source=source, line=number)
                if not _has_end(line, stream):
                    raise InputError("unterminated line", source=source, line=number)
                continue
            if number == 1:
                line = line.removeprefix(_BYTE_ORDER_MARK)
            if not line.isspace():
                yield number, line
    except OSError as error:
        raise InputError(f"cannot read: {error.strerror or error}", source=source) from error


def _has_end(line: bytes, stream: BinaryIO) -> bool:
    """Read the stream up to the end of the current line; return ``False`` if there is no end."""
    for _ in range(_MAX_PARTS):
        if not line or line.endswith(b"\n"):
            return True
        line = stream.readline(MAX_LINE_BYTES)
    return False


def decode_scenario(line: bytes, source: str, number: int) -> Scenario:
    """Decode the scenario in a line.

    Raises ``InputError`` unless it is a single JSON object of that form, without repeated keys, invalid numbers or
    excessive nesting.
    """
    try:
        _STRICT.decode(line.decode())
        family = family_of(msgspec.json.decode(line, type=_ScenarioHeader).algorithm)
        form: type[Scenario] = family.module().SCENARIO if family.answers_scenarios else Scenario
        scenario = msgspec.json.decode(line, type=form)
        if bytes(scenario.eviction):
            raise ValueError("evictions are not scheduled; use kpreempt drain for the pods of a node")
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
    """A scenario ready to be answered: its cluster, its pod if any, and the assumptions about both."""

    cluster: ClusterSnapshot
    pod: Pod | None
    assumptions: list[Assumption]
    source: str

    @property
    def pod_to_schedule(self) -> Pod:
        """The pod. Raises ``InputError`` if there is none."""
        if self.pod is None:
            raise InputError("Object missing required field `pod`", source=self.source)
        return self.pod


def situation_of(
    scenario: Scenario, source: str, base: LoadedCluster | None, extra_fields: ExtraFields = NO_EXTRAS
) -> Situation:
    """Build the cluster and pod of a scenario; its objects are added to ``base``, if there is one.

    All objects are completed as an API server would. Data that plugins have ``extra_fields`` is kept. Raises
    ``InputError``.
    """
    if base is not None and not scenario.objects:
        cluster, assumptions = base.cluster, base.assumptions
    else:
        cluster = cluster_from_json(scenario.objects or [], source, extra_fields)
        # The scheduler of a line receives the objects in the order of the line.
        cluster = (
            msgspec.structs.replace(cluster, has_scheduler_order=True)
            if base is None
            else merge_clusters(base.cluster, cluster)
        )
        cluster, found = complete_cluster(cluster)
        # Replace uncertain assumptions with those made now, when more is known.
        subjects = {(each.subject, each.field) for each in found}
        still_valid = [
            each
            for each in (base.assumptions if base else [])
            if each.kind is not AssumptionKind.UNCERTAIN or (each.subject, each.field) not in subjects
        ]
        assumptions = [*still_valid, *found]
    if not scenario.has_pod:
        return Situation(cluster, None, assumptions, source)
    decoded = object_decoder(extra_fields)("Pod", msgspec.json.decode(scenario.pod), source=source)
    alone = ClusterSnapshot(pods=[apply_api_defaults(decoded)], priority_classes=cluster.priority_classes)
    alone, about_pod = fill_priorities(alone)
    return Situation(cluster, alone.pods[0], [*assumptions, *about_pod], source)


def unread_of(extra_fields: ExtraFields, base: LoadedCluster | None) -> list[Assumption]:
    """List what a line's plugins need from the base cluster, which was read earlier without it."""
    if base is None:
        return []
    beyond = extra_fields.beyond(base.extra_fields)
    subjects = [(kind.key, "snapshot") for kind in beyond.kinds]
    if beyond.pod_annotations:
        subjects.append(("Pod", "metadata.annotations"))
    if beyond.pod_conditions:
        subjects.append(("Pod", "status.conditions"))
    reason = "not read, because the cluster was read before this line's configuration was known"
    message = f"{reason}; plugins and extenders don't see it"
    return [Assumption(subject, field, message) for subject, field in subjects]


class SchedulerCache(Generic[Prepared]):
    """The schedulers of scenarios and the base cluster prepared for them, reused while the settings stay the same."""

    def __init__(self, base: LoadedCluster | None, make: Callable[[Scenario], Prepared]) -> None:
        """``make`` builds the schedulers of a scenario."""
        self.base = base
        self._make = make
        self._last: tuple[object, Prepared] | None = None
        self._prepared: dict[int, Any] = {}

    def get(self, scenario: Scenario) -> Prepared:
        """Return what ``make`` builds for a scenario, reusing the previous result if the settings are equal."""
        settings = (scenario.algorithm, scenario.config, scenario.feature_gates, scenario.queued)
        if self._last is None or self._last[0] != settings:
            self._last, self._prepared = (settings, self._make(scenario)), {}
        return self._last[1]

    def prepare(self, scheduler: Scheduler, cluster: ClusterSnapshot, /, *, now: datetime, is_queued: bool) -> Any:
        """Return the cluster prepared for one of the schedulers."""
        if self.base is None or cluster is not self.base.cluster:
            return scheduler.prepare(cluster, now=now, is_queued=is_queued)
        if id(scheduler) not in self._prepared:
            self._prepared[id(scheduler)] = scheduler.prepare(cluster, now=now, is_queued=is_queued)
        return self._prepared[id(scheduler)]


def configuration_of(scenario: Scenario) -> Mapping[str, Any] | None:
    """Parse the scheduler configuration of a scenario into plain data. Raises ``InputError``."""
    # A line for Kueue has an object instead of text.
    return parse_document(scenario.config, "config") if scenario.config and isinstance(scenario.config, str) else None


def name_of(line: bytes) -> str:
    """Return the scenario's name, even if the rest of the line is invalid, or an empty string."""
    try:
        return msgspec.json.decode(line, type=_ScenarioHeader).name
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return ""


def _pairs(pairs: list[tuple[str, Any]]) -> None:
    seen = set()
    for key, _ in pairs:
        if key in seen:
            raise ValueError(f"duplicate key {key!r} in an object")
        seen.add(key)


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number in JSON")


def _number(text: str) -> None:
    if len(text) > _MAX_DIGITS:
        raise ValueError(f"number too long: {len(text)} digits")


# Decodes nothing; only rejects invalid input.
_STRICT = json.JSONDecoder(
    object_pairs_hook=_pairs, parse_constant=_constant, parse_int=_number, parse_float=_number, strict=True
)
