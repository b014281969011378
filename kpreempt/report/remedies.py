"""Remedies in words: what to change, what that brings, and how to apply it."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

from kpreempt.report.amounts import agree, count, format_amount, format_duration
from kpreempt.report.blocks import Block, Listing, Phrase, Section, Sentence, Span, Words, strong
from kpreempt.report.evidence import join_names
from kpreempt.report.options import RenderOptions
from kpreempt.verdict.remedies import Cause, CauseKind, Change, ChangeKind, ObjectEdit, Remedy, RemedySearch

_SELECTOR, _LABELS = "spec.selector", "metadata.labels"
_NOMINATED, _HOST_NAME, _NODE_NAME = "status.nominatedNodeName", "kubernetes.io/hostname", "metadata.name"
# Its selector and an amount.
_FIELDS_OF_SIMPLE_BUDGET = 2
_NODES_SHOWN = 3
_PODS_SHOWN = 3
_SHOWN = 4
_AMOUNTS_SHOWN = 4
# The width of what surrounds a command on a screen.
_AROUND_COMMAND = 14
_PRIORITY = 40
_CAUSE_PRIORITY = 45
# The lines for the first fact or remedy, and for what counts the others.
FIRST_LINES = 4
# Resources that hardly distinguish kinds of nodes.
_OMITTED_RESOURCES = ("pods", "ephemeral-storage")

_WORDS = {
    ChangeKind.LABEL_VALUE: "require {subject}",
    ChangeKind.NODE_TAINTS_POLICY: "set nodeTaintsPolicy: Honor for {subject}",
    ChangeKind.MATCH_LABEL_KEYS: "add pod-template-hash to matchLabelKeys for {subject}",
    ChangeKind.TOLERATION: "tolerate the taint {subject}",
    ChangeKind.PREFERENCE: "drop the pod's {subject}",
    ChangeKind.NODE_SELECTOR: "drop the node selector {subject}",
    ChangeKind.NODE_AFFINITY: "drop the required node affinity {subject}",
    ChangeKind.POD_AFFINITY: "drop the required pod affinity to {subject}",
    ChangeKind.POD_ANTI_AFFINITY: "drop the required anti-affinity to {subject}",
    ChangeKind.SPREAD: "drop the topology spread constraint {subject}",
    ChangeKind.HOST_PORT: "drop the host port {subject}",
    ChangeKind.PREEMPTION_POLICY: "let the pod preempt other pods (preemptionPolicy {subject})",
    ChangeKind.UNCORDON: "uncordon {subject}",
    ChangeKind.CORDON: "cordon {subject}",
    ChangeKind.PIN: "select the node by {subject}",
    ChangeKind.PLACE: "find a node for {subject}",
    ChangeKind.RESTART: "restart {subject}",
    ChangeKind.CREATE: "create {subject}",
    ChangeKind.DELETE: "delete {subject}",
    ChangeKind.OPTION: "use {subject}",
    ChangeKind.ORDER: "first {subject}",
}
# How to repair a node, by the taint that a controller has set because of its condition.
_REPAIRS = {
    "node.kubernetes.io/not-ready": "make {node} ready",
    "node.kubernetes.io/unreachable": "repair {node}, whose kubelet does not respond",
    "node.kubernetes.io/memory-pressure": "free memory on {node}",
    "node.kubernetes.io/disk-pressure": "free disk space on {node}",
    "node.kubernetes.io/pid-pressure": "stop processes on {node}",
    "node.kubernetes.io/network-unavailable": "repair the network of {node}",
    "node.kubernetes.io/out-of-service": "repair {node}, which is marked out of service",
    "node.cloudprovider.kubernetes.io/uninitialized": "wait until the cloud controller manager has initialized {node}",
    "node.cloudprovider.kubernetes.io/shutdown": "start {node}, which is shut down",
}


# What options of ``drain`` do, if their names don't say it.
_OPTIONS = {
    "--surge=1": "add the replacement of each node before draining it (--surge 1)",
    "--one-by-one": "replace the nodes one by one instead of cordoning all of them first (--one-by-one)",
}
# Changes that are reported together.
_GROUPED = (
    *(ChangeKind.REPAIR, ChangeKind.CORDON, ChangeKind.UNCORDON, ChangeKind.OPTION, ChangeKind.NODE_SELECTOR),
    *(ChangeKind.NODE_AFFINITY, ChangeKind.POD_AFFINITY, ChangeKind.POD_ANTI_AFFINITY, ChangeKind.HOST_PORT),
)


def action(remedy: Remedy, own: str = "") -> str:
    """What to do, in the imperative: ``uncordon n3``. ``own`` is the object in question, which is not named again."""
    parts: list[str] = []
    for kind, group in groupby(remedy.changes, key=lambda change: change.kind):
        changes = list(group)
        if kind is ChangeKind.SET:
            parts += _settings(changes, own)
        elif (
            kind not in _GROUPED or len(changes) == 1 or any(each.field or each.subject in _OPTIONS for each in changes)
        ):
            parts += [change_in_words(each, own) for each in changes]
        else:
            subjects = [each.subject for each in changes]
            of_all = " ".join(subjects) if kind is ChangeKind.OPTION else join_names(subjects, limit=_PODS_SHOWN)
            parts.append("repair " + of_all if kind is ChangeKind.REPAIR else _WORDS[kind].format(subject=of_all))
    return ", and ".join(parts)


def _settings(changes: Sequence[Change], own: str) -> list[str]:
    """Changes of fields; a field that takes the place of another one says so."""
    removed = {(each.subject, each.field): each for each in changes if _removes(each)}
    words = []
    for change in changes:
        if _removes(change) and change not in removed.values():
            continue
        text = change_in_words(change, own)
        old = next((each for each in removed.values() if each.subject == change.subject), None)
        if old is not None and not _removes(change):
            del removed[old.subject, old.field]
            text = f"{_field(change)}: {_value(change.value)} instead of {_field(old)}"
            text = f"set {text}{_of(change, own)}"
        words.append(text)
    return words


def _removes(change: Change) -> bool:
    return change.kind is ChangeKind.SET and change.value is None


def _field(change: Change) -> str:
    return change.field.removeprefix("spec.")


def _of(change: Change, own: str, preposition: str = "in") -> str:
    return "" if change.subject == own else f" {preposition} {change.subject}"


def change_in_words(change: Change, own: str = "") -> str:
    """A change, in the imperative; changes to the object ``own`` do not name it."""
    before, after, subject = change.before or 0, change.after or 0, change.subject
    if change.kind is ChangeKind.REQUEST:
        amount = format_amount(subject, after, exact=True) if after else "no"
        return f"request {amount} {subject} instead of {format_amount(subject, before, exact=True)}"
    if change.kind is ChangeKind.MAX_SKEW:
        return f"allow a skew of {after:,} instead of {before:,} for {subject}"
    if change.kind is ChangeKind.PRIORITY:
        return f"raise the priority of {subject or 'the pod'} from {before:,} to {after:,}"
    if change.kind is ChangeKind.BUDGET:
        return f"let PodDisruptionBudget {subject} allow {count(after, 'disruption')} instead of {before:,}"
    if change.kind is ChangeKind.WAIT:
        return f"wait until {subject} {'has terminated' if not change.field else 'is scheduled'}"
    if change.kind is ChangeKind.REPAIR and change.field:
        node = subject.removeprefix("Node ")
        # All other fields are devices of the node.
        return _REPAIRS.get(change.field, "make {device} on {node} allocatable").format(node=node, device=change.field)
    if change.kind is ChangeKind.REPAIR:
        return f"repair {subject}"
    if change.kind is ChangeKind.ADD_NODE:
        amounts = f" ({amounts_in_words(change.value)})" if isinstance(change.value, dict) else ""
        return f"add {count(after or 1, 'node')} like {subject}{amounts}"
    if change.kind is ChangeKind.SCALE:
        return f"scale {subject} to {count(after, 'replica')}"
    if change.kind is ChangeKind.OPTION and subject in _OPTIONS:
        return _OPTIONS[subject]
    if change.kind is ChangeKind.QUOTA:
        return _quota(change)
    if _removes(change):
        return f"remove {_field(change)}{_of(change, own, 'from')}"
    if change.kind is ChangeKind.SET and change.field == _SELECTOR:
        return f"select {change.value}" if subject == own else f"let {subject} select {change.value}"
    if change.kind is ChangeKind.SET:
        return f"set {_field(change)}: {_value(change.value)}{_of(change, own)}"
    if change.kind is ChangeKind.CREATE and change.field:
        return f"create {subject} with {change.field.removeprefix('spec.')}: {_value(change.value)}"
    return _WORDS[change.kind].format(subject=subject)


def _quota(change: Change) -> str:
    """``raise the nominalQuota of cpu in flavor spot of ClusterQueue a from 2 to 4``."""
    amounts = [format_amount(str(change.value), each or 0, exact=True) for each in (change.before, change.after)]
    return f"raise the {change.field} of {change.subject} from {amounts[0]} to {amounts[1]}"


def result(remedy: Remedy, *, lacks_budgets: bool = False, is_brief: bool = False) -> Phrase:
    """What the remedy brings for a pod: ``lands on n3; no pod is evicted``, or ``lands on n3`` if it ``is_brief``."""
    none = "" if is_brief else "; no pod is evicted"
    nodes = join_names(remedy.nodes, limit=_NODES_SHOWN)
    nodes = nodes.replace(" and ", " or ") if len(remedy.nodes) <= _NODES_SHOWN else f"one of {nodes}"
    some = "" if remedy.pods <= 1 else f"; {remedy.scheduled:,} of {remedy.pods:,} replicas land"
    if any(change.kind is ChangeKind.ADD_NODE and remedy.nodes == [change.field] for change in remedy.changes):
        return (Span("lands", "good"), f" there{none}{some}")
    if remedy.clears_after is not None:
        return (
            Span("lands", "good"),
            f" on {nodes} within {format_duration(remedy.clears_after)}{none}{some}",
        )
    if remedy.stops:
        return (
            Span("lands", "good"),
            f" on {nodes} once {join_names(remedy.stops, limit=_PODS_SHOWN)} has stopped{some}",
        )
    if not remedy.evicted:
        return (Span("lands", "good"), f" on {nodes}{none}{some}")
    evicted = join_names(remedy.evicted, limit=_PODS_SHOWN)
    if 0 < remedy.evictions < len(remedy.evicted):
        evicted = f"{remedy.evictions:,} of {evicted}"
    elif len(remedy.nodes) > 1:
        evicted = f"pods such as {evicted}"
    known = Span("PDBs were not read", "warn") if lacks_budgets else Span("no PDB is violated", "good")
    return (Span("preempts", "warn"), f" {evicted} on {nodes}; ", known, some)


def losses(remedy: Remedy) -> list[str]:
    """The pods that no controller recreates after the remedy, as a sentence; none if there are none."""
    return [f"no controller recreates {join_names(remedy.lost)}"] if remedy.lost else []


def interruptions(remedy: Remedy) -> list[str]:
    """The workloads without a ready pod during the remedy, as a sentence; none if there are none."""
    workloads = remedy.interrupted
    return [f"{join_names(workloads)} {agree(len(workloads), 'has')} no ready pod for a while"] if workloads else []


def line(remedy: Remedy) -> Phrase:
    """The action, with the custom resource whose operator may revert it."""
    manager = f" (through {remedy.manager}: its operator may revert other changes)" if remedy.manager else ""
    return (strong(action(remedy)), manager)


def commands(remedy: Remedy) -> list[str]:
    """The options that simulate the remedy, and the commands that apply it, as typed in a shell.

    A repair of pods or nodes has no kubectl command: what it brings is simulated.
    """
    tried = remedy.options or node_what_ifs(remedy)
    found = [join_options(tried)] if tried else []
    if any(change.kind is ChangeKind.REPAIR for change in remedy.changes):
        return found
    restarted = {each.subject for each in remedy.changes if each.kind is ChangeKind.RESTART}
    cordoned = [each.subject for each in remedy.changes if each.kind is ChangeKind.CORDON and not remedy.options]
    found += [f"kubectl cordon {' '.join(map(shlex.quote, cordoned))}"] if cordoned else []
    return [*found, *(kubectl(edit, restarts=edit.object in restarted) for edit in remedy.edits)]


def node_what_ifs(remedy: Remedy) -> list[str]:
    """The options that make the same changes of nodes; empty if the remedy also changes something else."""
    found: list[str] = []
    for change in remedy.changes:
        nodes = [each for each in remedy.edits if each.object.startswith("Node ")]
        own = change.subject.removeprefix("Node ")
        if change.kind is ChangeKind.UNCORDON:
            found.append(f"--uncordon={own}")
        elif change.kind is ChangeKind.REPAIR and change.field in _REPAIRS and nodes == remedy.edits:
            found.append(f"--taint-node={own}={change.field}-")
        elif change.kind is ChangeKind.SET and change.field == _LABELS and nodes:
            labels = [(each.object.removeprefix("Node "), each.patch["metadata"]["labels"]) for each in nodes]
            found += [f"--label-node={node}={key}={value}" for node, own in labels for key, value in own.items()]
        else:
            return []
    return found


def kubectl(edit: ObjectEdit, *, restarts: bool = False) -> str:
    """The kubectl command for an edit, which ``restarts`` a workload."""
    kind, _, name = edit.object.partition(" ")
    if kind == "Node" and "unschedulable" in edit.patch.get("spec", {}):
        return f"kubectl uncordon {name}"
    if kind == "Node" and edit.patch.keys() == {"metadata"}:
        labels = [f"{key}={shlex.quote(value)}" for key, value in edit.patch["metadata"]["labels"].items()]
        return " ".join(["kubectl label node", name, *labels])
    namespace, slash, own = name.rpartition("/")
    target = f"{kind.lower()} {own}" + (f" -n {namespace}" if slash else "")
    if restarts:
        return f"kubectl rollout restart {target}"
    if edit.deletes:
        return f"kubectl delete {target}"
    if edit.patch.keys() == {"spec"} and edit.patch["spec"].keys() == {"replicas"}:
        return f"kubectl scale {target} --replicas={edit.patch['spec']['replicas']}"
    if edit.creates and kind == "PodDisruptionBudget" and (text := _of_budget(edit.patch.get("spec") or {})):
        return f"kubectl create {target} {text}"
    if edit.creates:
        return f"echo {shlex.quote(_compact(edit.patch))} | kubectl create -f -"
    if edit.patch.keys() == {"status"}:
        target += " --subresource status"
    return f"kubectl patch {target} --type merge -p {shlex.quote(_compact(edit.patch))}"


def _compact(document: dict[str, Any]) -> str:
    return json.dumps(document, separators=(",", ":"))


def _of_budget(spec: dict[str, Any]) -> str:
    """The options of ``kubectl create poddisruptionbudget``; empty if they cannot express the PDB."""
    labels = spec.get("selector", {}).get("matchLabels")
    flags = {"maxUnavailable": "--max-unavailable", "minAvailable": "--min-available"}
    amounts = [f"{flags[key]}={spec[key]}" for key in spec if key in flags]
    if not labels or len(amounts) != 1 or len(spec) > _FIELDS_OF_SIMPLE_BUDGET or len(spec["selector"]) > 1:
        return ""
    selector = ",".join(f"{key}={value}" for key, value in labels.items())
    return f"--selector={shlex.quote(selector)} {amounts[0]}"


def join_options(options: Sequence[str]) -> str:
    """The options as typed in a shell, without breaks at spaces, so that they can be copied from a narrow page."""
    split = [option.partition("=") for option in options]
    return " ".join(f"{name}{equals}{shlex.quote(value) if equals else ''}" for name, equals, value in split)


def not_tried(search: RemedySearch) -> str:
    """What the search did not try; empty if it tried everything."""
    if search.reason == "size":
        return "the cluster is too large to search for other changes; --node NAME searches them for one node"
    parts = []
    if search.reason == "limit":
        parts.append(f"the search stopped after {count(search.tried, 'verdict')}")
    elif search.untried:
        why = "the time for it ended" if search.reason == "time" else "the search has a limit"
        parts.append(f"{count(search.untried, 'more change')} not tried: {why}")
    if search.untried_kinds:
        parts.append(f"{count(search.untried_kinds, 'kind')} of new nodes not tried")
    if search.extender_calls:
        parts.append(f"extenders were called {count(search.extender_calls, 'more time')} for this")
    return "; ".join(parts)


def nothing_found(search: RemedySearch, *, is_scheduled: bool = False) -> str:
    """A sentence saying that no remedy was found, and how thorough the search was.

    ``is_scheduled``: the pod gets a node by preempting others, so a remedy would avoid that.
    """
    if search.reason == "extender":
        return f"not searched: extender {search.extender} fails, which no change can fix"
    rest = not_tried(search)
    more = ", nor does 1 more node like those in the cluster" if search.kinds and not search.untried_kinds else ""
    what = "no tested change avoids the evictions" if is_scheduled else "no tested change helps"
    return f"{what}{more}{f'; {rest}' if rest else ''}"


def remedies_section(
    label: str,
    remedies: Sequence[Remedy],
    search: RemedySearch | None,
    options: RenderOptions,
    *,
    lacks_budgets: bool,
    is_scheduled: bool = False,
) -> Section:
    """The remedies for a pod, numbered, and how thorough the search was.

    ``is_scheduled``: the pod gets a node by preempting others, which a remedy avoids.
    """
    if not remedies:
        if search is None:
            return Section(label)
        text = nothing_found(search, is_scheduled=is_scheduled)
        return Section(label, text, priority=_PRIORITY, short=Section(label, text))
    items: list[list[Words]] = []
    brief: list[list[Words]] = []
    for remedy in remedies:
        words = (*line(remedy), ": ", *result(remedy, lacks_budgets=lacks_budgets))
        tried = commands(remedy)
        assumed = [Span(f"assumed: {each}", "warn") for each in remedy.assumed]
        items.append([words, *(Span(each, "code") for each in tried), *assumed])
        # Half a command helps no one.
        fits = not brief and len(tried) == 1 and len(tried[0]) < options.width - _AROUND_COMMAND
        brief.append([("or " if brief else "", *words), *([Span(tried[0], "code")] if fits else [])])
    blocks: list[Block] = [Listing(items, noun="change", shown=_SHOWN, is_numbered=True)]
    if search is not None and (rest := not_tried(search)):
        blocks.append(Sentence(Span(rest, "dim")))
    helps = "avoids the evictions" if is_scheduled else "helps"
    lead = f"either change {helps}:" if len(remedies) == 2 else f"any of these changes {helps}:" if remedies[1:] else ""
    short = Section(label, blocks=[Listing(brief, noun="change", is_whole=True)])
    return Section(
        label,
        lead,
        blocks,
        priority=_PRIORITY,
        is_inline=not lead,
        reserved_lines=FIRST_LINES,
        min_lines=FIRST_LINES,
        short=short,
    )


def causes_section(causes: Sequence[Cause]) -> Section:
    """The facts behind the rejections, each as a sentence."""
    lines: list[list[Words]] = [[cause_in_words(each)] for each in causes]
    return Section(
        "WHY",
        blocks=[Listing(lines, noun="fact", is_whole=True)],
        priority=_CAUSE_PRIORITY,
        is_inline=True,
        reserved_lines=FIRST_LINES,
        min_lines=FIRST_LINES,
    )


def cause_in_words(cause: Cause) -> str:
    """A fact, as a clause."""
    return _CAUSES[cause.kind](cause)


def _deadlock(cause: Cause) -> str:
    verb, own = ("holds", "stays") if len(cause.pods) == 1 else ("hold", "stay")
    pods = join_names(cause.pods, limit=_PODS_SHOWN)
    assumed = "" if not cause.is_assumed else " (if its strategy is the default one, which the input does not show)"
    held = cause.resource or "what the new pod needs"
    return (
        f"rollout deadlock of {cause.subject}: the old {pods} {verb} {held} on {join_names(cause.nodes)} and {own}"
        f" until the new pod is ready{assumed}"
    )


def _label(cause: Cause) -> str:
    if any(cause.values.values()):
        values = [f"{value or '(empty)'} ({join_names(nodes, limit=2)})" for value, nodes in cause.values.items()]
        return f"no node has {cause.subject}; nodes have {join_names(values, limit=len(values))}"
    near = f"; a similar label is {join_names([*cause.values])}" if cause.values else ""
    return f"no node has the label {cause.resource}, which {cause.subject} requires{near}"


def _resource(cause: Cause) -> str:
    if cause.amounts:
        nodes = [f"{amount:,} on {node}" for node, amount in cause.amounts.items()]
        return (
            f"{cause.subject} is in the capacity of nodes but not allocatable: {join_names(nodes)}; "
            "its driver or device plugin reports it as unhealthy"
        )
    return f"no node offers {cause.subject}: its driver or device plugin is missing or has not registered"


def _too_large(cause: Cause) -> str:
    requested, largest = (format_amount(cause.subject, cause.amounts.get(each, 0)) for each in ("requested", "largest"))
    return f"no node is large enough: the pod requests {requested} {cause.subject}, and the largest node has {largest}"


def _node_gone(cause: Cause) -> str:
    nodes = join_names(cause.nodes)
    exist = "which does not exist" if len(cause.nodes) == 1 else "which do not exist"
    if cause.subject == _NOMINATED:
        return f"the pod is nominated to {nodes}, {exist}"
    if cause.subject in (_HOST_NAME, _NODE_NAME):
        return f"the pod can only run on {nodes} ({cause.subject}), {exist}"
    if cause.subject.startswith("PersistentVolumeClaim "):
        return f"{cause.subject} waits for a volume on node {nodes}, {exist}"
    return f"{cause.subject} can only be used on {nodes}, {exist}; its data is there alone"


def _parts(cause: Cause) -> str:
    amounts = {part: format_amount(cause.subject, amount, exact=True) for part, amount in cause.amounts.items()}
    total = amounts.pop("total")
    summed = " + ".join(f"{amount} ({part})" for part, amount in amounts.items())
    return f"the pod requests {total} {cause.subject}: {summed}"


def _reserved(cause: Cause) -> str:
    allocatable, capacity = (
        format_amount(cause.subject, cause.amounts[each], exact=True) for each in ("allocatable", "capacity")
    )
    return f"{cause.nodes[0]} has {capacity} {cause.subject}, of which {allocatable} is allocatable to pods"


def _empty_domain(cause: Cause) -> str:
    verb = "counts" if len(cause.nodes) == 1 else "count"
    return (
        f"{join_names(cause.nodes)} {verb} as a domain of {cause.subject} with the fewest pods, "
        "although the pod cannot run there"
    )


def _fragmented(cause: Cause) -> str:
    free, most, requested = (
        format_amount(cause.subject, cause.amounts.get(each, 0), exact=True) for each in ("free", "most", "requested")
    )
    needed = f"the pod needs {requested} {cause.subject}"
    return f"{needed}: {free} free in total, but at most {most} on a node ({join_names(cause.nodes)})"


def _other_node(cause: Cause) -> str:
    located = [f"{pod} on {node}" for pod, node in zip(cause.pods, cause.nodes, strict=False)][:_PODS_SHOWN]
    rest = cause.amounts.get("pods", len(located)) - len(located)
    named = join_names([*located, *([f"{rest:,} more"] if rest else [])], limit=len(located) + 1)
    keep = agree(len(located) + rest, "keeps")
    return (
        f"{named} {keep} it out of {cause.subject}; preemption on other nodes there can't evict "
        f"{'it' if len(located) + rest == 1 else 'them'}"
    )


def _no_devices(cause: Cause) -> str:
    return (
        f"no ResourceSlice has a device for claim {cause.subject} (class {cause.resource}): its DRA driver is missing "
        "or has published none"
    )


def _selector(cause: Cause) -> str:
    owner = f"class {cause.resource}" if cause.resource else f"claim {cause.subject}"
    has = [f"{value} ({join_names(nodes, limit=2)})" for value, nodes in cause.values.items()]
    values = f" with {join_names(has, limit=len(has))}" if has else ""
    return f"the selector {cause.selector} of {owner} rejects devices{values}"


_CAUSES: dict[CauseKind, Callable[[Cause], str]] = {
    CauseKind.ROLLOUT_DEADLOCK: _deadlock,
    CauseKind.NO_SUCH_LABEL: _label,
    CauseKind.NO_SUCH_RESOURCE: _resource,
    CauseKind.TOO_LARGE: _too_large,
    CauseKind.NODE_GONE: _node_gone,
    CauseKind.PARTS: _parts,
    CauseKind.RESERVED: _reserved,
    CauseKind.EMPTY_DOMAIN: _empty_domain,
    CauseKind.FRAGMENTED: _fragmented,
    CauseKind.OTHER_NODE: _other_node,
    CauseKind.NO_DEVICES: _no_devices,
    CauseKind.SELECTOR: _selector,
}


def amounts_in_words(allocatable: Mapping[str, int]) -> str:
    """The allocatable resources of a node: ``4 cpu, 15Gi memory, 1 nvidia.com/gpu``."""
    names = [name for name, amount in allocatable.items() if amount and name not in _OMITTED_RESOURCES]
    names.sort(key=lambda name: (name != "cpu", name != "memory"))
    return ", ".join(f"{format_amount(name, allocatable[name])} {name}" for name in names[:_AMOUNTS_SHOWN])


def _value(value: Any) -> str:
    """The value as YAML on one line, as far as its names are plain."""
    if isinstance(value, dict) and all(map(str.isidentifier, value)):
        return f"{{{', '.join(f'{key}: {_value(each)}' for key, each in value.items())}}}"
    return value if isinstance(value, str) and value else json.dumps(value)
