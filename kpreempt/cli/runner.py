"""The common path of all commands: read the request, load the cluster, write the answer, and return an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.algorithms import Scheduler, scheduler_for
from kpreempt.cli.clusters import default_namespace, live_connection, load_cluster, single_use_of_stdin, snapshot_source
from kpreempt.cli.families import family_of
from kpreempt.cli.output import Output, Stopwatch, atomic_file, check_profile_path, parse_outputs, write_stdout
from kpreempt.cli.requests import AnswerRequest
from kpreempt.cli.terminal import EXIT_GATE, EXIT_UNCERTAIN, SCREEN_HEIGHT, complain, terminal_width, wants_color
from kpreempt.errors import UsageError
from kpreempt.files import name_of
from kpreempt.library.reading import LoadedCluster, Source, with_autoscalers
from kpreempt.library.schedulers import Context, SchedulerFactory
from kpreempt.model.cluster import ClusterSnapshot, within
from kpreempt.report.answers import Answer, format_names
from kpreempt.report.options import Extent, RenderOptions
from kpreempt.snapshot.collect import NOTHING_MORE, Needs
from kpreempt.snapshot.documents import read_document
from kpreempt.verdict import Assumption, AssumptionKind
from kpreempt.verdict.unread import LIST, invalidates_answer, unreadable_of

if TYPE_CHECKING:
    from kpreempt.library.gate.settings import GateSettings
    from kpreempt.snapshot.live.connection import Connection
    from kpreempt.snapshot.live.flags import ConnectionFlags
    from kpreempt.verdict.check import Check, GateFinding
    from kpreempt.verdict.node_report import Occupancy


class CommandRun:
    """A run of a command, with its common options already parsed, except those that select a scheduler."""

    def __init__(self, request: AnswerRequest, answer: str = "") -> None:
        """``answer`` is the record type of the answer, if it differs from the request's. Raises ``UsageError``.

        The run's duration counts from here.
        """
        single_use_of_stdin(request)
        self.stopwatch = Stopwatch()
        self.request = request
        if (input_limits := getattr(request, "input_limits", None)) is not None:
            input_limits.skipped.skips_bad = request.skip_bad_objects
        self.outputs: Sequence[Output] = parse_outputs(request.outputs, format_names(answer or request.answer))
        check_profile_path(request.profile_json, self.outputs)
        self._color = wants_color(request.color, sys.stdout)
        time_of_answer(request.now)
        self._began = time_of_answer(None)

    def now(self) -> datetime:
        """The time of an answer that is given now."""
        return time_of_answer(self.request.now)

    def time_of(self, cluster: ClusterSnapshot, now: datetime) -> datetime:
        """The time to which ages count: ``now`` if it is given or nothing else is known, else the dump's time."""
        return now if self.request.now is not None or cluster.taken_at is None else cluster.taken_at

    def read_scheduler(self, live: Connection | None = None) -> SchedulerFactory:
        """Return the requested scheduler. Raises ``InputError``, ``UsageError`` and ``ConfigurationError``."""
        request, extensions = self.request, self.request.extensions
        family = family_of(request.algorithm)
        if request.command_name in family.decides_single_pods:
            of_pods = family.module().read_scheduler_of_pods(request.scheduler_config, live)
            return SchedulerFactory(family.algorithm, lambda _: of_pods).checked()
        configuration = None
        if request.scheduler_config:
            from kpreempt.cli.scheduler_configs import read_scheduler_config

            configuration = read_scheduler_config(request.scheduler_config)
        policy = read_document(request.policy_config) if request.policy_config else None
        gates: dict[str, bool] = {}
        if request.feature_gates:
            from kpreempt.schedulers.kube.versions import parse_feature_gates

            for text in request.feature_gates:
                gates |= parse_feature_gates(text)
        plugins = extensions.found(configuration) if configuration or extensions.plugins else []

        def make(algorithm: str) -> Scheduler:
            return scheduler_for(algorithm, configuration, gates, policy, plugins, extensions.connect)

        return SchedulerFactory(request.algorithm, make, configuration, gates).checked()

    def connect(self, flags: ConnectionFlags | None = None) -> Connection | None:
        """Connect to the live cluster, unless there are snapshots; ``flags`` replaces the request's flags.

        The request's namespace replaces the context's: it is the one to read if others may not be read. Raises whatever
        ``live_connection`` raises.
        """
        live = live_connection(self.request.snapshots, flags or self.request.connection)
        namespace = getattr(self.request, "namespace", None)
        return msgspec.structs.replace(live, namespace=namespace) if live is not None and namespace else live

    def source(self, live: Connection | None) -> Source:
        """Return the source of the cluster: a live one or the snapshots."""
        return msgspec.structs.replace(snapshot_source(self.request, self.stopwatch), live=live)

    def load(
        self,
        live: Connection | None,
        needs: Needs = NOTHING_MORE,
        *,
        skip_kinds: Collection[str] = (),
        at: str | None = None,
    ) -> LoadedCluster:
        """Load the cluster and apply the additions and changes of the request.

        For a live cluster, kinds in ``skip_kinds`` are not read. ``at`` is the time in a recording if the request has
        none.
        """
        request = self.request
        source = msgspec.structs.replace(self.source(live), at=request.at or at, additions=request.additions)
        needs = msgspec.structs.replace(
            needs, skip_kinds=skip_kinds if request.node_changes.pools else {*skip_kinds, "NodePool"}
        )
        loaded = load_cluster(source, needs)
        if request.additions:
            added = [
                Assumption(name_of(path), "", "its objects added", AssumptionKind.WHAT_IF) for path in request.additions
            ]
            loaded = msgspec.structs.replace(loaded, assumptions=[*loaded.assumptions, *added])
        if request.node_changes.adds_or_removes:
            loaded = self._with_changed_nodes(loaded)
        about = getattr(request, "namespace", None)
        unread = unreadable_of(within(loaded.cluster, {about} if about else ()), needs.compare_kinds)
        loaded = msgspec.structs.replace(loaded, assumptions=[*loaded.assumptions, *unread]) if unread else loaded
        if request.without or request.budgets or request.node_changes.edits:
            from kpreempt.analysis.nodes.edits import with_changes

            cluster, assumptions = with_changes(
                loaded.cluster,
                request.namespace or "",
                default=default_namespace(live),
                removed=request.without,
                edits=request.node_changes.edits,
                budgets=request.budgets,
                now=self.time_of(loaded.cluster, self.now()),
            )
            loaded = msgspec.structs.replace(loaded, cluster=cluster, assumptions=[*loaded.assumptions, *assumptions])
        return loaded

    def context(
        self, loaded: LoadedCluster, factory: SchedulerFactory, now: datetime, live: Connection | None
    ) -> Context:
        """Build the context of a request made now; ages count to the time of the dump, unless ``--now`` is given."""
        is_dump = self.request.now is None and loaded.cluster.taken_at is not None
        return Context(
            loaded,
            factory,
            now,
            None if is_dump else now,
            phases=self.stopwatch,
            namespace=default_namespace(live),
            is_live=live is not None,
            warn=complain,
            read_autoscalers=partial(with_autoscalers, live=live) if live is not None else lambda cluster: cluster,
        )

    def _with_changed_nodes(self, loaded: LoadedCluster) -> LoadedCluster:
        from kpreempt.analysis.nodes.changes import with_changed_nodes
        from kpreempt.analysis.nodes.edits import requested_nodes

        changes = self.request.node_changes
        source = msgspec.structs.replace(
            snapshot_source(self.request, self.stopwatch), at=None, assume_none=frozenset()
        )

        def read_file(path: str) -> ClusterSnapshot:
            return load_cluster(msgspec.structs.replace(source, paths=[path])).cluster

        cluster, assumptions = with_changed_nodes(
            loaded.cluster,
            added=changes.added,
            pools=changes.pools,
            removed=changes.removed,
            read_file=read_file,
            now=self.time_of(loaded.cluster, self.now()),
        )
        requested = requested_nodes(added=changes.added, pools=changes.pools, removed=changes.removed)
        assumptions = [*loaded.assumptions, *requested, *assumptions]
        return msgspec.structs.replace(loaded, cluster=cluster, assumptions=assumptions)

    def write(
        self,
        answer: Answer,
        at: datetime | None,
        occupancy: Occupancy | None = None,
        *,
        to_stdout: Callable[[str], bool] = write_stdout,
        height: int = SCREEN_HEIGHT,
    ) -> bool:
        """Write the files, then standard output, the only one in color. Return ``False`` if its reader is gone.

        Ages in the answer count to ``at``, if it is known. ``occupancy`` is for formats that draw nodes, ``height`` for
        answers that fit on one screen.
        """
        is_clock = self.request.now is None and at is not None and at >= self._began
        options = RenderOptions(width=terminal_width(), height=height, now=at, is_clock=is_clock, occupancy=occupancy)
        for name in ("stream_name", "docs_url"):
            if of_check := getattr(self.request, name, ""):
                options = msgspec.structs.replace(options, **{name: of_check})
        extent = Extent(self.request.extent)
        options = msgspec.structs.replace(
            options,
            verbose=self.request.shows_all,
            extent=Extent.REPORT if self.request.reports_to_log else extent,
        )
        with ExitStack() as stack:
            for output in self.outputs:
                if output.path:
                    stack.enter_context(atomic_file(output.path)).write(output.render(answer, options))
        if sys.stdout is not None and sys.stdout.isatty():
            options = msgspec.structs.replace(options, extent=extent)
        on_stdout = msgspec.structs.replace(options, color=self._color)
        texts = (output.render(answer, on_stdout) for output in self.outputs if not output.path)
        return all(to_stdout(text) for text in texts)

    def write_once(self, answer: Answer, at: datetime | None, occupancy: Occupancy | None = None) -> None:
        """Write the only answer, and the timing profile if requested."""
        with self.stopwatch.phase("report"):
            self.write(answer, at, occupancy)
        if self.request.profile_json:
            self.stopwatch.write(self.request.profile_json)

    def exit_code(self, assumptions: Collection[Assumption], otherwise: int = 0) -> int:
        """Return ``EXIT_GATE`` if ``--strict`` is given and there are assumptions; reports the first of them."""
        counted = [each for each in assumptions if each.kind.is_assumed and each.kind is not AssumptionKind.NOTE]
        if not self.request.strict or not counted:
            return otherwise
        first, others = _first(counted)
        what = f"{': '.join(filter(None, (first.subject, first.field)))}: {first.message}{others}"
        complain(f"--strict: the answer depends on an assumption: {what}")
        return EXIT_GATE

    def exit_code_by_outcome(self, assumptions: Collection[Assumption], outcomes: Iterable[int]) -> int:
        """With ``--exit-code``, return the highest code of the outcomes, or that of an uncertain outcome."""
        outcome = 0
        if getattr(self.request, "exit_code", False):
            outcome = EXIT_UNCERTAIN if is_inconclusive(assumptions, "--exit-code") else max(outcomes, default=0)
        return self.exit_code(assumptions, outcome)


def write_gated(run: CommandRun, gate: GateSettings | None, answer: Check) -> int:
    """Write the answer and, if requested, the baseline; return the exit code of the gate."""
    assert gate is not None
    write_baseline(gate, answer.findings)
    run.write_once(answer, answer.at)
    return 0 if answer.passed or gate.rules.report_only else EXIT_GATE


def write_baseline(gate: GateSettings, findings: Iterable[GateFinding]) -> None:
    """Write the failures to ``--write-baseline``, if given. Raises ``KpreemptError``."""
    if text := gate.baseline_text(findings):
        with atomic_file(gate.write_to) as file:
            file.write(text)


def time_of_answer(text: str | None) -> datetime:
    """Parse ``text`` as a time (RFC 3339); ``None`` is the current time. Raises ``UsageError`` for any other text.

    The current time is in whole seconds, like Kubernetes' timestamps: a fraction would shift the timers of a
    simulation, so two consecutive runs would give different results.
    """
    if text is None:
        return datetime.now(UTC).replace(microsecond=0)
    try:
        now = datetime.fromisoformat(text)
    except ValueError:
        now = None
    if now is None or now.tzinfo is None:
        raise UsageError(f"--now: {text!r} is not a time with a time zone", hint="--now 2026-11-21T03:12:00Z")
    return now


def check_selection(request: AnswerRequest) -> None:
    """Raise ``UsageError`` if ``-n`` and ``-A`` contradict each other, or if ``-l`` is not a label selector."""
    from kpreempt.analysis.pod_selection import parse_selector

    if request.namespace and request.all_namespaces:
        raise UsageError("-n and -A cannot be used together")
    parse_selector(request.selector or "")


def is_inconclusive(assumptions: Collection[Assumption], option: str) -> bool:
    """Return whether an answer is too uncertain for ``option`` to pass it.

    That is the case if a kind that matters could not be read, or if a feature gate is set that is not modeled at all.
    The first such assumption is reported on standard error.
    """
    lacking = [each for each in assumptions if invalidates_answer(each)]
    if not lacking:
        return False
    first, others = _first(lacking)
    what = f"{first.subject}: {first.field}" if first.field not in ("", LIST) else first.subject
    complain(f"{option}: the answer is uncertain: {what}: {first.message}{others}")
    return True


def _first(assumptions: Collection[Assumption]) -> tuple[Assumption, str]:
    """Return the first assumption and words that count the others."""
    first = min(assumptions, key=lambda each: (each.subject, each.field))
    return first, f", and {len(assumptions) - 1} more" if len(assumptions) > 1 else ""
