"""What happens to drained nodes, for commands and programs."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import msgspec

from kpreempt.analysis.check.gate import with_custom_rules
from kpreempt.analysis.check.rollout.autoscalers import KIND
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
from kpreempt.library.time_limits import time_for_remedies
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.check.summary import summary
from kpreempt.verdict.unread import require

# The kinds whose manifests the search for remedies reads.
KINDS_FOR_REMEDIES = ("Deployment", KIND)
# The options that select an upgrade.
_UPGRADE_OPTIONS = "--one-by-one, --max-unavailable N or --surge N"


def drain(context: Context, request: Drain) -> Answered:
    """Simulate draining the nodes. Raises ``UsageError``, and ``NotFoundError`` for missing nodes."""
    has_time = time_for_remedies()
    gate = request.rules
    assert gate is not None
    context = context._replace(loaded=assuming_none(context.loaded, gate.assume_none))
    cluster = context.loaded.cluster
    require(cluster, "Node")
    options = drain_options(request)
    nodes = _nodes(request, cluster)
    # How nodes are replaced, if they are.
    at_once = 1 if request.one_by_one else request.max_unavailable
    if request.one_by_one and (request.max_unavailable or request.surge):
        raise UsageError("--one-by-one cannot be used with --max-unavailable or --surge: it means --max-unavailable 1")
    if not at_once and not request.surge:
        if request.kubelet_version:
            raise UsageError("--kubelet-version needs new nodes", hint=_UPGRADE_OPTIONS)
        if request.best_order:
            raise UsageError("--best-order needs an upgrade", hint=_UPGRADE_OPTIONS)
        upgrade = None
    else:
        if request.remove:
            raise UsageError(
                "--remove cannot be used for an upgrade: it shows which nodes can be removed, not replaced"
            )
        surge = request.surge or 0
        upgrade = Upgrade(
            max_unavailable=(at_once or 0) + surge, surge=surge, kubelet_version=request.kubelet_version or ""
        )
    at = context.at
    plan = UpgradePlan(cluster, plain_drain(nodes)) if upgrade is None else upgraded(cluster, nodes, upgrade, now=at)
    suppressions = gate.suppressions()
    answer = drain_nodes(
        DrainInput(
            cluster=plan.cluster,
            batches=plan.batches,
            options=options,
            description=_describe(request, upgrade),
            rules=gate.rules,
            suppressions=suppressions,
            seed=request.seed,
            runs=request.runs,
            worst_of=request.worst_of,
            assumptions=[*context.assumptions, *plan.assumptions],
            is_live=context.is_live,
            removes=request.remove,
            seeks_order=request.best_order,
            documents=context.loaded.documents,
            has_time=has_time,
        ),
        simulation_context(context),
    )
    answer = with_custom_rules(answer, gate.custom, gate.rules, suppressions)
    return Answered(
        msgspec.structs.replace(answer, gate=gate.to_source(suppressions), summary=summary(answer)), cluster
    )


def drain_options(request: Drain) -> DrainOptions:
    """Return the options in ``kubectl drain``'s terms.

    Raises ``UsageError`` for options that it rejects or that contradict.
    """
    try:
        parse_selector(request.pod_selector)
    except SelectorError:
        raise UsageError("--pod-selector=<pod_selector> must be a valid label selector") from None
    selector = request.selector or request.pool or ""
    if request.nodes and selector:
        raise UsageError("cannot specify both a node name and a --selector option")
    if not request.nodes and not selector:
        raise UsageError("no nodes given", hint="kpreempt drain NODE, -l SELECTOR or --pool")
    try:
        timeout = 0.0 if request.remove else timeout_seconds(request.timeout)
    except CommandError as error:
        raise UsageError(str(error).partition("\n")[0].removeprefix("error: ")) from None
    if request.selector and request.pool:
        raise UsageError("-l and --pool cannot be used together")
    if request.pool is not None and not all(request.pool.partition("=")[::2]):
        raise UsageError(f"--pool {request.pool}: expected LABEL=VALUE", hint="--pool pool=general")
    if request.remove and _flags(request):
        option = _flags(request)[0].partition("=")[0]
        raise UsageError(
            f"--remove and {option} cannot be used together: autoscalers don't use the options of kubectl drain"
        )
    if request.remove:
        # Autoscalers need no options to move a pod that their rules allow to move.
        return DrainOptions(force=True, ignore_daemon_sets=True, delete_empty_dir_data=True)
    return DrainOptions(
        force=request.force,
        ignore_daemon_sets=request.ignore_daemonsets,
        delete_empty_dir_data=request.delete_emptydir_data,
        pod_selector=request.pod_selector,
        skip_wait_for_delete_timeout_seconds=request.skip_wait_for_delete_timeout,
        grace_period_seconds=max(request.grace_period, -1),
        disable_eviction=request.disable_eviction,
        timeout=timeout,
    )


def _flags(request: Drain) -> list[str]:
    """Return the options of ``kubectl drain`` that were given, as a user would type them."""
    values = {
        "force": request.force,
        "ignore_daemonsets": request.ignore_daemonsets,
        "delete_emptydir_data": request.delete_emptydir_data,
        "disable_eviction": request.disable_eviction,
        "grace_period": request.grace_period if request.grace_period >= 0 else None,
        "pod_selector": request.pod_selector,
        "skip_wait_for_delete_timeout": request.skip_wait_for_delete_timeout or None,
        "timeout": request.timeout if request.timeout != "0s" else None,
    }
    options = {name: option_of(each) for name, each in fields_of(Drain).items()}
    given = [
        (option.long_name, value)
        for name, value in values.items()
        if value is not None and value is not False and value != "" and (option := options[name])
    ]
    return [name if value is True else f"{name}={value}" for name, value in given]


def _describe(request: Drain, upgrade: Upgrade | None) -> str:
    """Describe the drain as the command that a user would type."""
    selector = request.selector or request.pool
    which = ["-l", quote(selector)] if selector else [quote(each) for each in dict.fromkeys(request.nodes)]
    command = " ".join(["kubectl drain", *which, *map(quote, _flags(request))])
    if request.remove:
        return f"which of {', '.join(dict.fromkeys(request.nodes)) or selector} can be removed"
    if upgrade is None:
        return command
    before = f", {upgrade.surge} new {'one' if upgrade.surge == 1 else 'ones'} first" if upgrade.surge else ""
    order = ", in the order found to displace the fewest pods" if request.best_order else ""
    return f"{command}, {upgrade.max_unavailable} at a time{before}{order}, each then replaced by a new node"


def _nodes(request: Drain, cluster: ClusterSnapshot) -> Sequence[str]:
    """Return the selected nodes in the order in which they are drained. Raises ``NotFoundError`` and ``UsageError``."""
    there = {each.name: each.labels for each in cluster.nodes}
    selector = request.selector or request.pool
    if not selector:
        # kubectl accepts node/NAME, too.
        names = [name.removeprefix("nodes/").removeprefix("node/") for name in request.nodes]
        for name in names:
            if name not in there:
                on = {pod.spec.node_name for pod in cluster.pods if name in (pod.metadata.name, pod.key)} - {""}
                hint = f"it is a pod on {min(on)}: kpreempt drain {min(on)}" if on else nearest(name, there)
                raise NotFoundError(f'nodes "{name}" not found', hint=hint)
        return list(dict.fromkeys(names))
    try:
        parts = parse_selector(selector)
    except SelectorError as error:
        raise UsageError(f"-l {selector}: {error}") from None
    found = sorted(name for name, labels in there.items() if all(part.matches(labels) for part in parts))
    if not found:
        raise NotFoundError(f"no node matches {selector}")
    return found
