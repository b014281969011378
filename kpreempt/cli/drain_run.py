"""Answering ``kpreempt drain``."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote
from typing import TYPE_CHECKING

import msgspec

from kpreempt.analysis.check.gate import with_custom_rules
from kpreempt.analysis.drain.answer import DrainQuestion, drain_nodes
from kpreempt.analysis.drain.shifts import Upgrade, Upgraded, plain_drain, upgraded
from kpreempt.analysis.explain.overrides import changed
from kpreempt.cli.answering import Run
from kpreempt.cli.clusters import single_use_of_stdin
from kpreempt.cli.terminal import EXIT_GATE
from kpreempt.cli.workers import Spread
from kpreempt.errors import NotFoundError, UsageError, nearest
from kpreempt.eviction.drain_command import CommandError, DrainCommand, parse_command
from kpreempt.eviction.selectors import SelectorError, parse_selector
from kpreempt.library.chances import chances, paces
from kpreempt.library.gate.settings import gate_settings
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.answers import CHECK_FORMATS
from kpreempt.report.check.summary import summary

if TYPE_CHECKING:
    from kpreempt.cli.drain import DrainRequest


# The ways of an upgrade.
_WAYS = "--one-by-one, --max-unavailable N or --surge N"
# Autoscalers ask nobody where their rules let a pod be moved.
_ALL_MOVE = ["--ignore-daemonsets", "--delete-emptydir-data", "--force"]


def run_drain(request: DrainRequest) -> int:
    """Answer the request, and return the exit code."""
    command = _command(request)
    _refuse_contradictions(request)
    run = Run(request, CHECK_FORMATS)
    now = run.now()
    gate = gate_settings(request.gate, now, command="drain")
    live = run.connect()
    asked = run.read_scheduler()
    loaded = run.load(live, asked.wanted, additions=request.additions, with_events=False)
    cluster = changed(loaded.cluster, removed=request.without)
    configured = asked.on(cluster)
    nodes = _nodes(request, cluster)
    upgrade = _upgrade(request)
    at = run.time_of(cluster, now)
    way = Upgraded(cluster, plain_drain(nodes)) if upgrade is None else upgraded(cluster, nodes, upgrade, now=at)
    excuses = gate.excuses()
    answer = drain_nodes(
        DrainQuestion(
            cluster=way.cluster,
            shifts=way.shifts,
            command=command,
            told=_told(request, upgrade),
            rules=gate.rules,
            excuses=excuses,
            seed=request.seed,
            runs=request.runs,
            worst_of=request.max_plays if request.worst_case else 0,
            assumptions=[*configured.assumptions, *loaded.assumptions, *way.assumptions],
            is_live=live is not None,
            removes=request.remove,
            seeks_order=request.best_order,
        ),
        configured.scheduler,
        now=now,
        at=at,
        chances=chances,
        paces=paces,
        spread=Spread(run.stopwatch, request.jobs),
        phases=run.stopwatch,
    )
    answer = with_custom_rules(answer, gate.custom, gate.rules, excuses)
    answer = msgspec.structs.replace(answer, gate=gate.told(excuses), summary=summary(answer))
    gate.save_baseline(answer.findings)
    run.write_once(answer, answer.at)
    return 0 if answer.passed else EXIT_GATE


def _command(request: DrainRequest) -> DrainCommand:
    """The command as ``kubectl drain`` understands it. Raises ``UsageError`` for what it refuses, in its words."""
    selector = request.selector or request.pool or ""
    options = _ALL_MOVE if request.remove else _options(request)
    arguments = ["--", *request.nodes] if request.nodes else []
    try:
        parse_selector(request.pod_selector)
    except SelectorError:
        raise UsageError("--pod-selector=<pod_selector> must be a valid label selector") from None
    try:
        return parse_command([*options, *([f"--selector={selector}"] if selector else []), *arguments])
    except CommandError as error:
        words = str(error).partition("\n")[0].removeprefix("error: ")
        if words.startswith("USAGE"):
            raise UsageError("which nodes is missing", hint="kpreempt drain NODE, -l SELECTOR or --pool") from None
        raise UsageError(words) from None


def _options(request: DrainRequest) -> list[str]:
    """The options of ``kubectl drain`` that were given."""
    flags = {
        "--force": request.force,
        "--ignore-daemonsets": request.ignore_daemonsets,
        "--delete-emptydir-data": request.delete_emptydir_data,
        "--disable-eviction": request.disable_eviction,
    }
    found = [name for name, is_given in flags.items() if is_given]
    if request.grace_period >= 0:
        found.append(f"--grace-period={request.grace_period}")
    if request.pod_selector:
        found.append(f"--pod-selector={request.pod_selector}")
    if request.skip_wait_for_delete_timeout:
        found.append(f"--skip-wait-for-delete-timeout={request.skip_wait_for_delete_timeout}")
    if request.timeout != "0s":
        found.append(f"--timeout={request.timeout}")
    return found


def _upgrade(request: DrainRequest) -> Upgrade | None:
    """How nodes are replaced, where they are. Raises ``UsageError``."""
    at_once = 1 if request.one_by_one else request.max_unavailable
    if request.one_by_one and (request.max_unavailable or request.surge):
        raise UsageError("--one-by-one is --max-unavailable 1 without --surge: one of them")
    if not at_once and not request.surge:
        if request.kubelet_version:
            raise UsageError("--kubelet-version is of new nodes", hint=_WAYS)
        if request.best_order:
            raise UsageError("--best-order is of an upgrade", hint=_WAYS)
        return None
    if request.remove:
        raise UsageError("--remove asks which nodes can go, and an upgrade replaces them: one of both")
    surge = request.surge or 0
    return Upgrade(at_once=(at_once or 0) + surge, surge=surge, kubelet_version=request.kubelet_version or "")


def _told(request: DrainRequest, upgrade: Upgrade | None) -> str:
    """The command as a user would write it."""
    selector = request.selector or request.pool
    which = ["-l", quote(selector)] if selector else [quote(each) for each in dict.fromkeys(request.nodes)]
    told = " ".join(["kubectl drain", *which, *map(quote, _options(request))])
    if request.remove:
        return f"which of {', '.join(dict.fromkeys(request.nodes)) or selector} can go"
    if upgrade is None:
        return told
    before = f", {upgrade.surge} new {'one' if upgrade.surge == 1 else 'ones'} first" if upgrade.surge else ""
    order = ", in the order found to displace least" if request.best_order else ""
    return f"{told}, {upgrade.at_once} at a time{before}{order}, each then replaced by a new node"


def _refuse_contradictions(request: DrainRequest) -> None:
    """Raise ``UsageError`` where the options contradict each other."""
    if request.selector and request.pool:
        raise UsageError("-l and --pool both say which nodes: one of both")
    if request.pool is not None and not all(request.pool.partition("=")[::2]):
        raise UsageError(f"--pool {request.pool}: this is not a label with its value", hint="--pool pool=general")
    if request.remove and _options(request):
        option = _options(request)[0].partition("=")[0]
        raise UsageError(f"--remove goes by the rules of autoscalers, and {option} is of kubectl drain: one of both")
    request.refuse_contradictions()
    single_use_of_stdin(
        {"--snapshot": request.snapshots, "--with": request.additions, "--add-node": request.node_changes.files}
    )


def _nodes(request: DrainRequest, cluster: ClusterSnapshot) -> Sequence[str]:
    """The nodes that are meant, in the order in which they are drained. Raises ``NotFoundError``, ``UsageError``."""
    there = {each.name: each.labels for each in cluster.nodes}
    selector = request.selector or request.pool
    if not selector:
        for name in request.nodes:
            if name not in there:
                raise NotFoundError(f'nodes "{name}" not found', hint=nearest(name, there))
        return list(dict.fromkeys(request.nodes))
    try:
        parts = parse_selector(selector)
    except SelectorError as error:
        raise UsageError(f"-l {selector}: {error}") from None
    found = sorted(name for name, labels in there.items() if all(part.matches(labels) for part in parts))
    if not found:
        raise NotFoundError(f"no node has the labels {selector}")
    return found
