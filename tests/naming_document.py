"""The tables of docs/naming.md, from the commands, options, rules, records and columns themselves."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from kpreempt.cli.requests import COMMANDS
from kpreempt.fleet.rows import TABLES
from kpreempt.gate_rules import RuleId
from kpreempt.library.options import Option, Request, fields_of, group_of, option_of
from kpreempt.mcp.server import TOOLS
from kpreempt.report.batch_lines import FIELDS, VALUES
from kpreempt.report.schema import verdict_schema

DOCUMENT = Path(__file__).parent.parent / "docs" / "naming.md"
# Commands of an option that are listed.
_MAX_COMMANDS = 6
# What the description of an enumeration leaves to the name of a value.
_MEANINGS = {
    "Outcome": {
        "Lands": "the pod gets a node without an eviction",
        "NotScheduled": "the scheduler does not attempt the pod, which is gated, held, or belongs to another scheduler",
        "Preempts": "the pod is nominated to a node, and evicting its victims violates no budget",
        "PreemptsViolatingBudgets": "the pod preempts, and some evictions violate a budget",
        "Uncertain": "the outcome depends on something unknown",
    },
    "Code": {
        "": "schedulers before 1.18 have no codes",
        "Error": "the step ended with an error",
        "Pending": "a plugin waits, for example for devices",
        "Skip": "the plugin has nothing to do for the pod",
        "Success": "the node or the pod passes",
        "Unschedulable": "the node or the pod is rejected, but evictions may help",
        "UnschedulableAndUnresolvable": "the node or the pod is rejected, and evictions cannot help",
        "Wait": "a Permit plugin delays the binding",
    },
    "VolumeFit": {
        "EveryOrder": "the claims fit in every order",
        "NoOrder": "the claims fit in no order",
        "SomeOrders": "the claims fit in some orders",
        "Unknown": "there are too many combinations to check them all",
    },
    "remedies.ChangeKind": {
        "addNode": "add a node like another one",
        "budget": "let a PodDisruptionBudget allow more disruptions",
        "cordon": "cordon other nodes",
        "create": "create an object",
        "delete": "delete an object",
        "hostPort": "remove a host port",
        "labelValue": "require another value of a label",
        "matchLabelKeys": "count only pods of the same revision for a spread constraint",
        "maxSkew": "raise the maxSkew of a spread constraint",
        "nodeAffinity": "relax a node affinity term",
        "nodeSelector": "remove a label from the node selector",
        "nodeTaintsPolicy": "exclude nodes with untolerated taints from a spread constraint",
        "option": "add an option to the command",
        "order": "do something else first",
        "pin": "require the node",
        "podAffinity": "remove a pod affinity term",
        "podAntiAffinity": "remove a pod anti-affinity term",
        "preemptionPolicy": "allow the pod to preempt",
        "preference": "change a preference of the pod",
        "priority": "raise the priority",
        "repair": "repair a node, a device or pods",
        "request": "request less of a resource",
        "restart": "restart a workload",
        "scale": "scale a workload",
        "set": "set or remove a field of an object",
        "toleration": "tolerate a taint",
        "topologySpread": "remove a topology spread constraint",
        "uncordon": "uncordon the node",
    },
    "SimulationEnd": {
        "Aborted": "the simulation reached its limit",
        "Loop": "the same steps repeat forever",
        "Settled": "nothing more happens",
    },
    "PendingState": {
        "BeingDeleted": "the pod has a deletion timestamp",
        "Gated": "the pod has scheduling gates",
        "Held": "a plugin other than scheduling gates keeps the pod out of the queue",
        "NeverAttempted": "the scheduler has not reported an attempt to schedule the pod",
        "NoScheduler": "no profile has the pod's schedulerName",
        "StaleNomination": "preemption on the nominated node no longer helps",
        "WaitsForVictims": "the pod's victims on the nominated node are terminating",
    },
    "QueueTimeSource": {
        "Condition": "the time at which attempts to schedule the pod started to fail",
        "Creation": "the time at which the pod was created",
        "Event": "the time of the last attempt that an event reports",
        "None": "the time is unknown",
    },
    "Agreement": {"Different": "messages with different reasons", "Same": "the same message"},
    "PendingChangeKind": {
        "Changed": "the pod is still pending, with another outcome or state",
        "Landed": "the pod got a node",
        "New": "the pod was not pending before",
    },
    "PodPhase": {
        "Finished": "all containers of the pod have ended",
        "NotFound": "the pod is not in the cluster",
        "Pending": "the pod has no node",
        "Running": "the pod has a node",
        "Terminating": "the pod has a deletion timestamp",
        "Unknown": "not even the pod's name is known",
    },
    "SizeName": {
        "own": "the pod's own requests",
        "ownPlusFree": "the pod's own requests plus the free capacity of its node",
        "typical": "the median of all pods' requests",
    },
    "FindingId": {
        "allows-none-now": "the budget allows no disruptions in the current state",
        "invalid-selector": "the selector cannot be parsed",
        "no-budget": "the workload has several replicas and no budget",
        "no-status": "the disruption controller has not written a status",
        "null-selector": "the selector is missing, so the budget matches no pod",
        "protects-nothing": "the budget allows all its pods to be disrupted",
        "selects-nothing": "the selector matches no pod",
        "several-workloads": "the budget's pods belong to more than one workload",
        "stale-status": "the budget's status is older than its spec",
    },
    "Severity": {
        "error": "the budget is invalid, blocks drains permanently, or would be violated by preemption",
        "note": "the situation may be intended",
        "warning": "the situation is probably not intended",
    },
    "check.ChangeKind": {
        "Created": "an object that the cluster does not have",
        "Deleted": "an object that the change deletes",
        "Unchanged": "an object that does not change",
    },
    "RuleSeverity": {
        "error": "a violation fails the gate",
        "off": "the rule is not checked",
        "warn": "a violation is only reported",
    },
    "DriftKind": {
        "Better": "the figure is lower than in the previous run",
        "Fixed": "the previous run had the finding, and this run does not",
        "New": "this run has the finding, and the previous run did not",
        "Worse": "the figure is higher than in the previous run",
    },
    "DrainRemedyAction": {
        "AddNode": "add a node like `target`",
        "Delete": "delete the object",
        "Option": "add an option to the `kubectl drain` command",
        "Scale": "scale the workload",
        "Set": "set a field of the budget",
    },
    "AutoscalerRule": {
        "DoNotDisrupt": "Karpenter: `karpenter.sh/do-not-disrupt` is true",
        "LocalStorage": "Cluster Autoscaler: the pod has a hostPath or an emptyDir on disk",
        "NoController": "Cluster Autoscaler: no controller owns the pod",
        "NotSafeToEvict": "Cluster Autoscaler: `cluster-autoscaler.kubernetes.io/safe-to-evict` is false",
        "SystemPod": "Cluster Autoscaler: the pod is in kube-system and has no budget",
    },
    "QueueName": {
        "Active": "the pod is ready to be tried",
        "Backoff": "the pod waits until its backoff ends",
        "Gated": "the pod has scheduling gates, or a plugin holds it",
        "Unschedulable": "the pod waits for an event that may help",
    },
    "Step": {"NominatedNodes": "the nodes to which the pod can be nominated"},
    "UpgradeEffect": {
        "EvictsNoPods": "the pod preempted pods before, and now lands without evictions",
        "LandsElsewhere": "the pod lands on other nodes",
        "LandsNow": "the pod did not land before, and now lands",
        "NoLongerLands": "the pod landed before, and no longer lands",
        "Unknown": "the effect is unknown",
    },
    "DecisionKind": {
        "Bound": "the pod was bound to a node",
        "Nominated": "the pod was nominated to a node",
        "Unschedulable": "an attempt to schedule the pod failed with a message",
    },
    "HistoryEventType": {
        "Added": "the object, or a pod on the node, was created",
        "Bound": "the pod was bound",
        "Changed": "the object changed",
        "Deleted": "the object, or a pod on the node, was deleted",
        "Nominated": "the pod was nominated to a node",
        "Unschedulable": "an attempt to schedule the pod failed",
    },
    "OperationKind": {
        "allocate": "a task was allocated to a node",
        "evict": "a task was evicted",
        "pipeline": "resources that are being freed were reserved for a task",
        "unallocate": "an allocation was undone",
        "unevict": "an eviction was undone",
        "unpipeline": "a reservation made by `pipeline` was undone",
    },
    "Purpose": {
        "Allocate": "place a task",
        "Backfill": "place a task without requests",
        "Enqueue": "admit a job to its queue",
        "PreemptBetweenJobs": "evict tasks of other jobs in the queue",
        "PreemptWithinJob": "evict tasks of the same job",
        "Reclaim": "evict tasks of other queues",
    },
    "AttemptOutcome": {
        "Allocated": "the task gets the node immediately",
        "Enqueued": "the job is admitted to its queue",
        "NoNode": "no node is feasible",
        "NotEnqueued": "the job is not admitted to its queue",
        "Pipelined": "the task waits for resources that are being freed",
        "PrePredicateFailed": "a check that runs before any node is tried failed",
    },
    "StatementOutcome": {
        "Committed": "the statement's operations take effect",
        "Discarded": "the statement's operations are undone",
    },
    "WorkloadOutcome": {"Pending": "the Workload gets no quota"},
}
_TABLE = re.compile(r"(<!-- table: (?P<name>[\w ]+) -->\n)(?:\|.*\n)*")


def with_names(text: str) -> str:
    """The page with its tables as they are now."""
    tables = {
        "commands": _commands,
        "options": _options,
        "rules": _rules,
        "values": _values,
        "documents": _documents,
        "columns": _columns,
        "tools": _tools,
        "lines": _lines,
    }
    return _TABLE.sub(lambda match: match[1] + "".join(f"{row}\n" for row in tables[match["name"]]()), text)


def _rows(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    titles = list(titles)
    yield _row(titles)
    yield f"|{'---|' * len(titles)}"
    for row in rows:
        yield _row(row)


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def request_of(command: str) -> type[Request]:
    """The options that a command takes."""
    module, _, name = COMMANDS[command].request.partition(":")
    found: type[Request] = getattr(import_module(f"kpreempt.cli.{module}"), name)
    return found


def _first_sentence(text: str) -> str:
    """The first sentence, as Markdown on one line."""
    line = " ".join(text.split("\n\n", maxsplit=1)[0].split()).replace("``", "`")
    return re.split(r"(?<=[.])\s(?=[A-Z`])", line)[0]


def _commands() -> Iterator[str]:
    rows = [
        [f"[`{name}`](commands/{name}.md)", _first_sentence(request_of(name).__doc__ or ""), _kind_of(request_of(name))]
        for name in COMMANDS
    ]
    return _rows(("command", "answers", "`kind` of its JSON"), rows)


def _kind_of(request: type[Request]) -> str:
    kinds = {name: each["properties"]["kind"].get("const", "") for name, each in _documents_of_schema().items()}
    return f"`{kinds[request.answer]}`" if request.answer in kinds else ""


def _options_of(request: type[Request]) -> Iterator[tuple[str, Option]]:
    for annotation in fields_of(request).values():
        group = group_of(annotation)
        for each in group.options.values() if group else (annotation,):
            option = option_of(each)
            if option is not None and option.names:
                yield max(option.names, key=len), option


def _options() -> Iterator[str]:
    taken: dict[str, dict[str, list[str]]] = {}
    for command in COMMANDS:
        request = request_of(command)
        for name, option in _options_of(request):
            words = option.help(request) if callable(option.help) else option.help
            taken.setdefault(name, {}).setdefault(_first_sentence(words), []).append(command)
    rules = {str(rule) for rule in RuleId}
    rows = [
        [f"`{name}`", meaning, _listed(commands)]
        for name, meanings in sorted(taken.items())
        if name.lstrip("-").partition("/")[0] not in rules
        for meaning, commands in meanings.items()
    ]
    return _rows(("option", "meaning", "commands"), rows)


def _listed(commands: Collection[str]) -> str:
    return ", ".join(commands) if len(commands) <= _MAX_COMMANDS else f"{len(commands)} commands"


def _rules() -> Iterator[str]:
    rows = [
        [f"[`{rule}`](rules/{rule}.md)", f"{rule.row.promise}", f"{rule.row.severity}", ", ".join(rule.row.commands)]
        for rule in RuleId
    ]
    return _rows(("rule", "holds if", "severity", "commands"), rows)


def _definitions() -> dict[str, Any]:
    found: dict[str, Any] = verdict_schema()["$defs"]
    return found


def _documents_of_schema() -> dict[str, Any]:
    return {
        name: each for name, each in _definitions().items() if "const" in each.get("properties", {}).get("kind", {})
    }


def values() -> dict[str, tuple[str, list[str]]]:
    """By enumeration what it says, and its values."""
    return {
        _short(name): (each.get("description", ""), each["enum"])
        for name, each in _definitions().items()
        if "enum" in each
    }


def _values() -> Iterator[str]:
    rows = (
        [f"`{name}`", f"`{value}`" if value else "(empty)", _MEANINGS.get(name, {}).get(value) or _meaning(text, value)]
        for name, (text, listed) in sorted(values().items())
        for value in listed
    )
    return _rows(("enumeration", "value", "meaning"), rows)


def _short(name: str) -> str:
    """``check.ChangeKind`` of ``kpreempt.verdict.check.ChangeKind``."""
    return ".".join(name.split(".")[-2:]) if name.count(".") > 1 else name


def _meaning(text: str, value: str) -> str:
    """The sentence of the description that is about the value; else the value in words."""
    sentences = re.split(r"(?<=\.)\s+(?=``|[A-Z])", " ".join(text.split()))
    for sentence in sentences:
        head, colon, rest = sentence.partition(":")
        if value and f"``{value}``" in head:
            return _as_markdown(rest if colon else sentence)
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", value).replace("-", " ").lower()


def _as_markdown(text: str) -> str:
    return text.strip().rstrip(".").replace("``", "`")


def _documents() -> Iterator[str]:
    rows = (
        [
            f"`{_short(name)}`",
            _with_keys(_first_sentence(each.get("description", "")), each["properties"]),
            ", ".join(f"`{key}`" for key in each["properties"]),
        ]
        for name, each in sorted(_definitions().items())
        if "properties" in each
    )
    return _rows(("record", "what it is", "keys"), rows)


def _with_keys(text: str, keys: Collection[str]) -> str:
    """The text with the JSON keys instead of the attributes of the Python library."""

    def to_key(match: re.Match[str]) -> str:
        key = re.sub(r"_(\w)", lambda letter: letter[1].upper(), match[1])
        return f"`{key}`" if key in keys else match[0]

    return re.sub(r"`(\w+)`", to_key, text)


def _columns() -> Iterator[str]:
    rows = ([f"`{table}`", f"`{column.name}`", column.meaning] for table, listed in TABLES.items() for column in listed)
    return _rows(("table", "column", "meaning"), rows)


def _tools() -> Iterator[str]:
    return _rows(
        ("tool", "answers"), ([f"`{name}`", _first_sentence(each.description)] for name, each in TOOLS.items())
    )


def _lines() -> Iterator[str]:
    keys = [
        [f"`{kind.__name__}`", f"`{_encoded(kind, name)}`", f"`{line}`"]
        for kind, names in FIELDS.items()
        for name, line in names.items()
    ]
    named = [[f"`{type(value).__name__}`", f"`{value}`", f"`{line}`"] for value, line in VALUES.items()]
    return _rows(("record or enumeration", "in all other documents", "in a line of `batch`"), [*keys, *named])


def _encoded(kind: Any, field: str) -> str:
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    return str(names[field])
