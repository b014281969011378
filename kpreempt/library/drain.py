"""What becomes of nodes that are drained, for commands and for programs alike."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

import msgspec

from kpreempt.analysis.check.gate import with_custom_rules
from kpreempt.analysis.drain.answer import DrainQuestion, drain_nodes
from kpreempt.analysis.drain.kubectl import Upgrade, Upgraded, plain_drain, upgraded
from kpreempt.analysis.pending.verdicts import Spread, one_by_one
from kpreempt.errors import NotFoundError, UsageError, nearest
from kpreempt.eviction.kubectl_drain import CommandError, DrainCommand, parse_command
from kpreempt.eviction.selectors import SelectorError, parse_selector
from kpreempt.library.chances import context_of
from kpreempt.library.gate.settings import GateSettings
from kpreempt.library.reading import assuming_none
from kpreempt.library.schedulers import Ground
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.check.summary import summary
from kpreempt.verdict.drain import Drain
from kpreempt.verdict.unread import require

# The ways of an upgrade.
_WAYS = "--one-by-one, --max-unavailable N or --surge N"
# Autoscalers ask nobody where their rules let a pod be moved.
_ALL_MOVE = ["--ignore-daemonsets", "--delete-emptydir-data", "--force"]


class NodeDrain(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked: which nodes, by name or by labels, and how; the fields are named after the command's options."""

    nodes: Sequence[str] = ()
    selector: str | None = None
    pool: str | None = None
    force: bool = False
    ignore_daemonsets: bool = False
    delete_emptydir_data: bool = False
    disable_eviction: bool = False
    grace_period: int = -1
    pod_selector: str = ""
    skip_wait_for_delete_timeout: int = 0
    timeout: str = "0s"
    one_by_one: bool = False
    max_unavailable: int | None = None
    surge: int | None = None
    best_order: bool = False
    remove: bool = False
    kubelet_version: str | None = None
    seed: int = 0
    runs: int | None = None
    worst_case: bool = False
    max_plays: int = 100

    def command(self) -> DrainCommand:
        """As ``kubectl drain`` understands it. Raises ``UsageError`` for what it refuses, and for contradictions."""
        command = _command(self)
        _refuse_contradictions(self)
        return command


def drain(
    ground: Ground,
    asked: NodeDrain,
    gate: GateSettings,
    *,
    is_live: bool = False,
    spread: Spread = one_by_one,
) -> Drain:
    """The answer. Raises ``UsageError``, and ``NotFoundError`` for nodes that are not there."""
    ground = ground._replace(loaded=assuming_none(ground.loaded, gate.assume_none))
    cluster = ground.loaded.cluster
    require(cluster, "Node")
    command = asked.command()
    nodes = _nodes(asked, cluster)
    upgrade = _upgrade(asked)
    way = Upgraded(cluster, plain_drain(nodes)) if upgrade is None else upgraded(cluster, nodes, upgrade, now=ground.at)
    excuses = gate.excuses()
    answer = drain_nodes(
        DrainQuestion(
            cluster=way.cluster,
            shifts=way.shifts,
            command=command,
            told=_told(asked, upgrade),
            rules=gate.rules,
            excuses=excuses,
            seed=asked.seed,
            runs=asked.runs,
            worst_of=asked.max_plays if asked.worst_case else 0,
            assumptions=[*ground.assumptions, *way.assumptions],
            is_live=is_live,
            removes=asked.remove,
            seeks_order=asked.best_order,
        ),
        context_of(ground, spread),
    )
    answer = with_custom_rules(answer, gate.custom, gate.rules, excuses)
    return msgspec.structs.replace(answer, gate=gate.told(excuses), summary=summary(answer))


def _command(asked: NodeDrain) -> DrainCommand:
    """The command as ``kubectl drain`` understands it. Raises ``UsageError`` for what it refuses, in its words."""
    selector = asked.selector or asked.pool or ""
    options = _ALL_MOVE if asked.remove else _options(asked)
    arguments = ["--", *asked.nodes] if asked.nodes else []
    try:
        parse_selector(asked.pod_selector)
    except SelectorError:
        raise UsageError("--pod-selector=<pod_selector> must be a valid label selector") from None
    try:
        return parse_command([*options, *([f"--selector={selector}"] if selector else []), *arguments])
    except CommandError as error:
        words = str(error).partition("\n")[0].removeprefix("error: ")
        if words.startswith("USAGE"):
            raise UsageError("which nodes is missing", hint="kpreempt drain NODE, -l SELECTOR or --pool") from None
        raise UsageError(words) from None


def _options(asked: NodeDrain) -> list[str]:
    """The options of ``kubectl drain`` that were given."""
    flags = {
        "--force": asked.force,
        "--ignore-daemonsets": asked.ignore_daemonsets,
        "--delete-emptydir-data": asked.delete_emptydir_data,
        "--disable-eviction": asked.disable_eviction,
    }
    found = [name for name, is_given in flags.items() if is_given]
    if asked.grace_period >= 0:
        found.append(f"--grace-period={asked.grace_period}")
    if asked.pod_selector:
        found.append(f"--pod-selector={asked.pod_selector}")
    if asked.skip_wait_for_delete_timeout:
        found.append(f"--skip-wait-for-delete-timeout={asked.skip_wait_for_delete_timeout}")
    if asked.timeout != "0s":
        found.append(f"--timeout={asked.timeout}")
    return found


def _upgrade(asked: NodeDrain) -> Upgrade | None:
    """How nodes are replaced, where they are. Raises ``UsageError``."""
    at_once = 1 if asked.one_by_one else asked.max_unavailable
    if asked.one_by_one and (asked.max_unavailable or asked.surge):
        raise UsageError("--one-by-one is --max-unavailable 1 without --surge: one of them")
    if not at_once and not asked.surge:
        if asked.kubelet_version:
            raise UsageError("--kubelet-version is of new nodes", hint=_WAYS)
        if asked.best_order:
            raise UsageError("--best-order is of an upgrade", hint=_WAYS)
        return None
    if asked.remove:
        raise UsageError("--remove asks which nodes can go, and an upgrade replaces them: one of both")
    surge = asked.surge or 0
    return Upgrade(at_once=(at_once or 0) + surge, surge=surge, kubelet_version=asked.kubelet_version or "")


def _told(asked: NodeDrain, upgrade: Upgrade | None) -> str:
    """The command as a user would write it."""
    selector = asked.selector or asked.pool
    which = ["-l", quote(selector)] if selector else [quote(each) for each in dict.fromkeys(asked.nodes)]
    told = " ".join(["kubectl drain", *which, *map(quote, _options(asked))])
    if asked.remove:
        return f"which of {', '.join(dict.fromkeys(asked.nodes)) or selector} can go"
    if upgrade is None:
        return told
    before = f", {upgrade.surge} new {'one' if upgrade.surge == 1 else 'ones'} first" if upgrade.surge else ""
    order = ", in the order found to displace least" if asked.best_order else ""
    return f"{told}, {upgrade.at_once} at a time{before}{order}, each then replaced by a new node"


def _refuse_contradictions(asked: NodeDrain) -> None:
    """Raise ``UsageError`` where the options contradict each other."""
    if asked.selector and asked.pool:
        raise UsageError("-l and --pool both say which nodes: one of both")
    if asked.pool is not None and not all(asked.pool.partition("=")[::2]):
        raise UsageError(f"--pool {asked.pool}: this is not a label with its value", hint="--pool pool=general")
    if asked.remove and _options(asked):
        option = _options(asked)[0].partition("=")[0]
        raise UsageError(f"--remove goes by the rules of autoscalers, and {option} is of kubectl drain: one of both")


def _nodes(asked: NodeDrain, cluster: ClusterSnapshot) -> Sequence[str]:
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
