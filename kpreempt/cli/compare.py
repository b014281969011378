"""``kpreempt compare``: several schedulers next to each other, or the versions before and after an upgrade."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from kpreempt.analysis.algorithms import (
    AUTO,
    scheduler_for,
)
from kpreempt.analysis.compare.differences import comparison_of
from kpreempt.analysis.compare.upgrade import (
    keeps_workloads,
    parse_version,
    versions_between,
)
from kpreempt.cli.clusters import default_namespace
from kpreempt.cli.extensions import Extensions
from kpreempt.cli.families import family_of
from kpreempt.cli.manifests import picked, read_subjects
from kpreempt.cli.runner import CommandRun, is_inconclusive
from kpreempt.cli.scenarios import (
    Scenario,
    SchedulerCache,
    configuration_of,
    decode_scenario,
    name_of,
    opened,
    read_lines,
    situation_of,
    source_of,
    unread_of,
)
from kpreempt.cli.scheduler_configs import read_scheduler_config
from kpreempt.cli.terminal import EXIT_GATE, EXIT_INPUT
from kpreempt.errors import InputError, KpreemptError, UsageError, within_calendar
from kpreempt.library.handlers import answer
from kpreempt.library.reading import LoadedCluster
from kpreempt.library.requests import Compare, Upgrade
from kpreempt.library.schedulers import Context, SchedulerFactory
from kpreempt.model.extra_fields import all_extras
from kpreempt.scheduler_table import DEFAULT_ALGORITHM, PREFIX
from kpreempt.schedulers.kube.versions import parse_feature_gates
from kpreempt.snapshot.collect import Needs
from kpreempt.verdict import Assumption
from kpreempt.verdict.compare import ComparedPod, Comparison, UpgradeComparison

if TYPE_CHECKING:
    from kpreempt.analysis.algorithms import Scheduler
    from kpreempt.cli.requests import CompareRequest


_MAX_SCENARIOS = 100_000


def compare(request: CompareRequest) -> int:
    """Answer the request and return the exit code."""
    if request.upgrade_to is not None:
        target = _check_upgrade(request)
        run = CommandRun(request, "UpgradeComparison")
        answer, now = _upgrade_answer(request, run, target)
        run.write_once(answer, now)
        if request.fail_on_difference and (not answer.passes or is_inconclusive(answer.assumptions, _GATE)):
            return EXIT_GATE
        return run.exit_code(answer.assumptions)
    _check(request)
    run = CommandRun(request)
    # Problems with the plugins are the same for every scheduler, so they are reported once.
    run.read_scheduler()
    # The algorithms are ``NAME[@FILE][:GATE=BOOL]...,...``, at least two.
    text = request.algorithms or ""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if len(parts) < 2:
        raise UsageError(
            "--algorithms needs two or more schedulers", hint=f"--algorithms kube-1.13,{DEFAULT_ALGORITHM}"
        )
    twice = next((part for part in parts if parts.count(part) > 1), "")
    if twice:
        hint = f"{twice},{twice}@FILE or {twice},{twice}:GATE=false"
        raise UsageError(f"--algorithms {text}: {twice} is listed twice", hint=hint)
    schedulers = [_parsed(part, request.extensions) for part in parts]
    now = run.now()
    found = (_compare_scenarios if request.batch else _compare_pods)(request, run, schedulers, now)
    run.write_once(found, now)
    if any(item.error for item in found.items):
        return EXIT_INPUT
    if request.fail_on_difference and (found.differing or is_inconclusive(found.assumptions, _GATE)):
        return EXIT_GATE
    return run.exit_code(found.assumptions)


def _check(request: CompareRequest) -> None:
    """Raise ``UsageError`` if the options contradict each other."""
    settings: dict[str, Any] = {"--algorithm": request.algorithm, "--scheduler-config": request.scheduler_config}
    settings |= {"--feature-gates": request.feature_gates, "--workloads": request.workloads}
    if alone := next((option for option, value in settings.items() if value), None):
        hint = f"--algorithms kube-1.13,{DEFAULT_ALGORITHM}@FILE:GATE=false"
        raise UsageError(f"{alone} needs --upgrade-to", hint=hint)
    ways = {"by name": request.pod, "by -f": request.files, "by --batch": request.batch}
    given = [way for way, value in ways.items() if value]
    if len(given) > 1:
        raise UsageError(f"the pods are selected twice: {given[0]} and {given[1]}")
    if request.select and not request.files:
        raise UsageError("--select needs a manifest", hint="-f FILE")


def _compare_pods(
    request: CompareRequest, run: CommandRun, schedulers: list[ComparedScheduler], now: datetime
) -> Comparison:
    request.extensions.check_enabled([each.configuration for each in schedulers if each.configuration is not None])
    live = run.connect()
    subjects = read_subjects(request.files, request.namespace or default_namespace(live), request.input_limits)
    templates = picked(subjects.templates, request.select, request.namespace)
    factories = {each.label: each.scheduler() for each in schedulers}
    loaded = run.load(
        live, Needs(extra_fields=all_extras(each.extra_fields for each in factories.values()), with_events=True)
    )
    context = run.context(loaded, next(iter(factories.values())), now, live)
    found: Comparison = answer(context, request.having(templates=templates, schedulers=factories)).record
    return found


def _compare_scenarios(
    request: CompareRequest, run: CommandRun, schedulers: list[ComparedScheduler], now: datetime
) -> Comparison:
    """Compare each scenario in its own cluster, added to any snapshot; invalid lines become items with an error."""
    base: LoadedCluster | None = None
    if request.snapshots or request.connection.as_arguments():
        # Include everything that any scheduler's plugins read beyond the usual objects.
        base = run.load(
            run.connect(),
            Needs(extra_fields=all_extras(each.scheduler().extra_fields for each in schedulers), with_events=True),
        )

    def build_schedulers(scenario: Scenario) -> dict[str, SchedulerFactory]:
        """Build the schedulers; a scenario's configuration and gates apply to the algorithm that it names."""
        configuration = configuration_of(scenario)
        return {
            each.label: each.scheduler(configuration, scenario.feature_gates)
            if each.algorithm == (scenario.algorithm or DEFAULT_ALGORITHM)
            else each.scheduler()
            for each in schedulers
        }

    ready = SchedulerCache(base, build_schedulers)
    items: list[ComparedPod] = []
    assumptions: list[Assumption] = list(base.assumptions) if base else []
    path = request.batch or ""
    source = source_of(path)
    with opened(path) as stream:
        for number, line in read_lines(stream, source):
            # All scenarios form one answer, which is held in memory until the end.
            if len(items) >= _MAX_SCENARIOS:
                raise InputError(f"more than {_MAX_SCENARIOS:,} scenarios", source=source)
            try:
                if isinstance(line, InputError):
                    raise line
                scenario = decode_scenario(line, source, number)
                factories = ready.get(scenario)
                extra_fields = all_extras(each.extra_fields for each in factories.values())
                with within_calendar(source, number):
                    situation = situation_of(scenario, f"{source}:{number}", base, extra_fields)
                    loaded = LoadedCluster(situation.cluster, [*situation.assumptions, *unread_of(extra_fields, base)])
                    library_request = Compare(
                        schedulers=factories,
                        admitted=situation.pod_to_schedule,
                        is_queued=scenario.queued,
                        prepare=ready.prepare,
                    )
                    context = Context(loaded, next(iter(factories.values())), now, now, run.stopwatch)
                    comparison: Comparison = answer(context, library_request).record
            except KpreemptError as error:
                name = name_of(line) if isinstance(line, bytes) else ""
                items.append(ComparedPod(name=name or f"{source}:{number}", is_same=False, error=error.message))
                continue
            items += [msgspec.structs.replace(item, name=scenario.name) for item in comparison.items]
            assumptions += comparison.assumptions
    return comparison_of([each.label for each in schedulers], items, assumptions)


class ComparedScheduler(NamedTuple):
    """An algorithm by its label, and what is needed to build its scheduler."""

    label: str
    algorithm: str
    configuration: Mapping[str, Any] | None
    feature_gates: Mapping[str, bool]
    extensions: Extensions = Extensions()

    def scheduler(
        self, configuration: Mapping[str, Any] | None = None, gates: Mapping[str, bool] | None = None
    ) -> SchedulerFactory:
        """Build the scheduler; the arguments apply unless the algorithm has its own configuration or gates.

        A ``--plugin`` runs only if a configuration enables it, so that a scheduler can be compared with itself.
        """
        own = self.configuration or configuration
        if (family := family_of(self.algorithm)).decides_single_pods:
            if self.feature_gates:
                raise UsageError(f"{self.label}: {self.algorithm} has no feature gates")
            of_pods = family.module().scheduler_of_pods(self.configuration, self.label)
            return SchedulerFactory(self.algorithm, lambda _: of_pods)
        plugins = [msgspec.structs.replace(each, is_requested=False) for each in self.extensions.found(own)]
        both = {**(gates or {}), **self.feature_gates}
        make = partial(
            scheduler_for, configuration=own, feature_gates=both, plugins=plugins, connect=self.extensions.connect
        )
        return SchedulerFactory(self.algorithm, make)


def _parsed(text: str, extensions: Extensions) -> ComparedScheduler:
    named, *gates = text.split(":")
    name, at, path = named.partition("@")
    if at and not path:
        raise UsageError(f"--algorithms {text}: configuration file missing after @", hint=f"{name}@FILE")
    configuration = read_scheduler_config(path) if path else None
    label = ":".join([f"{name}@{PurePath(path).name}" if path else name, *gates])
    scheduler = ComparedScheduler(label, name, configuration, parse_feature_gates(",".join(gates)), extensions)
    # Check now rather than after reading the cluster: most mistakes are here.
    scheduler.scheduler().checked()
    return scheduler


_GATE = "--fail-on-difference"


def _check_upgrade(request: CompareRequest) -> str:
    """Return the version to upgrade to. Raises ``UsageError`` if the options contradict each other."""
    target = parse_version(request.upgrade_to or "")
    for option, value in (("--algorithms", request.algorithms), ("--batch", request.batch)):
        if value:
            raise UsageError(
                f"--upgrade-to and {option} cannot be used together", hint="--algorithm for the older version"
            )
    if request.pod and (request.files or request.workloads):
        raise UsageError("the pods are selected twice: by name, and by -f or --workloads")
    if request.select and not request.files:
        raise UsageError("--select needs a manifest", hint="-f FILE")
    return target


def _upgrade_answer(request: CompareRequest, run: CommandRun, target: str) -> tuple[UpgradeComparison, datetime]:
    configuration = read_scheduler_config(request.scheduler_config) if request.scheduler_config else None
    gates = {name: value for text in request.feature_gates for name, value in parse_feature_gates(text).items()}
    extensions = request.extensions
    plugins = extensions.found(configuration) if configuration or extensions.plugins else []

    def build_scheduler(algorithm: str) -> Scheduler:
        return scheduler_for(algorithm, configuration, gates, None, plugins, extensions.connect)

    newer = SchedulerFactory(f"{PREFIX}{target}", build_scheduler)
    now = run.now()
    live = run.connect()
    subjects = read_subjects(request.files, request.namespace or default_namespace(live), request.input_limits)
    # Plugins read the same objects in all versions.
    needs = Needs(
        extra_fields=newer.extra_fields,
        with_events=True,
        keep_document=keeps_workloads if request.workloads else None,
        compare_kinds=["CronJob"] if request.workloads else [],
    )
    library_request = Upgrade(
        pod=request.pod,
        namespace=request.namespace,
        templates=picked(subjects.templates, request.select, request.namespace),
        workloads=request.workloads,
        base=request.algorithm or AUTO,
        versions_from=lambda base: versions_between(base, target, configuration, gates, plugins, extensions.connect),
    )
    found: UpgradeComparison = answer(run.context(run.load(live, needs), newer, now, live), library_request).record
    return found, now
