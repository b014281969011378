"""What becomes of nodes that are drained, for commands and for programs alike."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import msgspec

from kpreempt.analysis.check.gate import with_custom_rules
from kpreempt.analysis.drain.answer import DrainInput, drain_nodes
from kpreempt.analysis.drain.kubectl import Upgrade, UpgradePlan, plain_drain, upgraded
from kpreempt.errors import NotFoundError, UsageError, nearest
from kpreempt.eviction.kubectl_drain import CommandError, DrainOptions, timeout_seconds
from kpreempt.eviction.selectors import SelectorError, parse_selector
from kpreempt.library.check import simulation_context
from kpreempt.library.options import fields_of, option_of
from kpreempt.library.reading import assuming_none
from kpreempt.library.requests import Drain
from kpreempt.library.schedulers import Answered, Context
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.check.summary import summary
from kpreempt.verdict.unread import require

# The ways of an upgrade.
_MODES = "--one-by-one, --max-unavailable N or --surge N"


def drain(context: Context, request: Drain) -> Answered:
    """What becomes of the nodes. Raises ``UsageError``, and ``NotFoundError`` for nodes that are not there."""
    gate = request.rules
    assert gate is not None
    context = context._replace(loaded=assuming_none(context.loaded, gate.assume_none))
    cluster = context.loaded.cluster
    require(cluster, "Node")
    options = drain_options(request)
    nodes = _nodes(request, cluster)
    # How nodes are replaced, where they are.
    at_once = 1 if request.one_by_one else request.max_unavailable
    if request.one_by_one and (request.max_unavailable or request.surge):
        raise UsageError("--one-by-one is --max-unavailable 1 without --surge: one of them")
    if not at_once and not request.surge:
        if request.kubelet_version:
            raise UsageError("--kubelet-version is of new nodes", hint=_MODES)
        if request.best_order:
            raise UsageError("--best-order is of an upgrade", hint=_MODES)
        upgrade = None
    else:
        if request.remove:
            raise UsageError("--remove asks which nodes can go, and an upgrade replaces them: one of both")
        surge = request.surge or 0
        upgrade = Upgrade(
            max_unavailable=(at_once or 0) + surge, surge=surge, kubelet_version=request.kubelet_version or ""
        )
    at = context.at
    way = UpgradePlan(cluster, plain_drain(nodes)) if upgrade is None else upgraded(cluster, nodes, upgrade, now=at)
    suppressions = gate.suppressions()
    answer = drain_nodes(
        DrainInput(
            cluster=way.cluster,
            shifts=way.shifts,
            options=options,
            description=_told(request, upgrade),
            rules=gate.rules,
            suppressions=suppressions,
            seed=request.seed,
            runs=request.runs,
            worst_of=request.worst_of,
            assumptions=[*context.assumptions, *way.assumptions],
            is_live=context.is_live,
            removes=request.remove,
            seeks_order=request.best_order,
        ),
        simulation_context(context),
    )
    answer = with_custom_rules(answer, gate.custom, gate.rules, suppressions)
    return Answered(
        msgspec.structs.replace(answer, gate=gate.to_source(suppressions), summary=summary(answer)), cluster
    )


def drain_options(asked: Drain) -> DrainOptions:
    """As ``kubectl drain`` understands it. Raises ``UsageError`` for what it refuses, and for contradictions."""
    try:
        parse_selector(asked.pod_selector)
    except SelectorError:
        raise UsageError("--pod-selector=<pod_selector> must be a valid label selector") from None
    selector = asked.selector or asked.pool or ""
    if asked.nodes and selector:
        raise UsageError("cannot specify both a node name and a --selector option")
    if not asked.nodes and not selector:
        raise UsageError("which nodes is missing", hint="kpreempt drain NODE, -l SELECTOR or --pool")
    try:
        timeout = 0.0 if asked.remove else timeout_seconds(asked.timeout)
    except CommandError as error:
        raise UsageError(str(error).partition("\n")[0].removeprefix("error: ")) from None
    if asked.selector and asked.pool:
        raise UsageError("-l and --pool both say which nodes: one of both")
    if asked.pool is not None and not all(asked.pool.partition("=")[::2]):
        raise UsageError(f"--pool {asked.pool}: this is not a label with its value", hint="--pool pool=general")
    if asked.remove and _flags(asked):
        option = _flags(asked)[0].partition("=")[0]
        raise UsageError(f"--remove goes by the rules of autoscalers, and {option} is of kubectl drain: one of both")
    if asked.remove:
        # Autoscalers ask nobody where their rules let a pod be moved.
        return DrainOptions(force=True, ignore_daemon_sets=True, delete_empty_dir_data=True)
    return DrainOptions(
        force=asked.force,
        ignore_daemon_sets=asked.ignore_daemonsets,
        delete_empty_dir_data=asked.delete_emptydir_data,
        pod_selector=asked.pod_selector,
        skip_wait_for_delete_timeout_seconds=asked.skip_wait_for_delete_timeout,
        grace_period_seconds=max(asked.grace_period, -1),
        disable_eviction=asked.disable_eviction,
        timeout=timeout,
    )


def _flags(asked: Drain) -> list[str]:
    """The options of ``kubectl drain`` that were given, as a user would write them."""
    values = {
        "force": asked.force,
        "ignore_daemonsets": asked.ignore_daemonsets,
        "delete_emptydir_data": asked.delete_emptydir_data,
        "disable_eviction": asked.disable_eviction,
        "grace_period": asked.grace_period if asked.grace_period >= 0 else None,
        "pod_selector": asked.pod_selector,
        "skip_wait_for_delete_timeout": asked.skip_wait_for_delete_timeout or None,
        "timeout": asked.timeout if asked.timeout != "0s" else None,
    }
    options = {name: option_of(each) for name, each in fields_of(Drain).items()}
    given = [
        (option.long_name, value)
        for name, value in values.items()
        if value is not None and value is not False and value != "" and (option := options[name])
    ]
    return [name if value is True else f"{name}={value}" for name, value in given]


def _told(asked: Drain, upgrade: Upgrade | None) -> str:
    """The command as a user would write it."""
    selector = asked.selector or asked.pool
    which = ["-l", quote(selector)] if selector else [quote(each) for each in dict.fromkeys(asked.nodes)]
    told = " ".join(["kubectl drain", *which, *map(quote, _flags(asked))])
    if asked.remove:
        return f"which of {', '.join(dict.fromkeys(asked.nodes)) or selector} can go"
    if upgrade is None:
        return told
    before = f", {upgrade.surge} new {'one' if upgrade.surge == 1 else 'ones'} first" if upgrade.surge else ""
    order = ", in the order found to displace least" if asked.best_order else ""
    return f"{told}, {upgrade.max_unavailable} at a time{before}{order}, each then replaced by a new node"


def _nodes(asked: Drain, cluster: ClusterSnapshot) -> Sequence[str]:
    """The nodes that are meant, in the order in which they are drained. Raises ``NotFoundError``, ``UsageError``."""
    there = {each.name: each.labels for each in cluster.nodes}
    selector = asked.selector or asked.pool
    if not selector:
        for name in asked.nodes:
            if name not in there:
                raise NotFoundError(f'nodes "{name}" not found', hint=nearest(name, there))
        return list(dict.fromkeys(asked.nodes))
    try:
        parts = parse_selector(selector)
    except SelectorError as error:
        raise UsageError(f"-l {selector}: {error}") from None
    found = sorted(name for name, labels in there.items() if all(part.matches(labels) for part in parts))
    if not found:
        raise NotFoundError(f"no node has the labels {selector}")
    return found
