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
        "Lands": "it gets a node without an eviction",
        "NotScheduled": "the scheduler does not attempt it: it is gated, held, or of another scheduler",
        "Preempts": "it is nominated to a node, and its victims violate no budget",
        "PreemptsViolatingBudgets": "it preempts, and some evictions violate a budget",
        "Uncertain": "something unknown decides between outcomes",
    },
    "Code": {
        "": "schedulers before 1.18 have no codes",
        "Error": "an error ended the step",
        "Pending": "a plugin waits, for example for devices",
        "Skip": "the plugin has nothing to do for the pod",
        "Success": "the node or the pod passes",
        "Unschedulable": "rejected, and evictions may help",
        "UnschedulableAndUnresolvable": "rejected, and evictions cannot help",
        "Wait": "a permit plugin waits",
    },
    "VolumeFit": {
        "EveryOrder": "the claims fit in every order",
        "NoOrder": "the claims fit in no order",
        "SomeOrders": "the claims fit in some orders",
        "Unknown": "there are too many combinations to check them all",
    },
    "node_report.ChangeKind": {
        "budget": "change a PodDisruptionBudget",
        "cordon": "cordon other nodes",
        "hostPort": "remove a host port",
        "maxSkew": "raise the maxSkew of a spread constraint",
        "nodeAffinity": "relax a node affinity term",
        "nodeSelector": "remove a label from the node selector",
        "pin": "require the node",
        "podAffinity": "remove a pod affinity term",
        "podAntiAffinity": "remove a pod anti-affinity term",
        "preemptionPolicy": "allow the pod to preempt",
        "preference": "change a preference of the pod",
        "priority": "raise the priority",
        "request": "request less of a resource",
        "toleration": "tolerate a taint",
        "topologySpread": "remove a topology spread constraint",
        "uncordon": "uncordon the node",
        "withoutPod": "remove another pod",
    },
    "SimulationEnd": {
        "Aborted": "the simulation reached its limit",
        "Loop": "the same steps repeat forever",
        "Settled": "nothing more happens",
    },
    "PendingState": {
        "BeingDeleted": "it has a deletion timestamp",
        "Gated": "it has scheduling gates",
        "Held": "a plugin other than scheduling gates keeps it out of the queue",
        "NeverAttempted": "the scheduler has reported no attempt",
        "NoScheduler": "no profile has its schedulerName",
        "StaleNomination": "preemption on the nominated node no longer helps",
        "WaitsForVictims": "its victims on the nominated node are terminating",
    },
    "QueueTimeSource": {
        "Condition": "when its attempts began to fail",
        "Creation": "when the pod was created",
        "Event": "the last attempt that an event reports",
        "None": "unknown",
    },
    "Agreement": {"Different": "different reasons", "Same": "the same message"},
    "PendingChangeKind": {
        "Changed": "it is still pending, with another outcome or state",
        "Landed": "it got a node",
        "New": "it was not pending before",
    },
    "PodPhase": {
        "Finished": "all its containers have ended",
        "NotFound": "it is not in the cluster",
        "Pending": "it has no node",
        "Running": "it has a node",
        "Terminating": "it has a deletion timestamp",
        "Unknown": "not even its name is known",
    },
    "SizeName": {
        "own": "the pod's own requests",
        "ownPlusFree": "the pod's own requests and what is free on its node",
        "typical": "the median of all pods' requests",
    },
    "FindingId": {
        "allows-none-now": "it allows no disruptions in the current state",
        "invalid-selector": "the selector cannot be parsed",
        "no-budget": "the workload has several replicas and no budget",
        "no-status": "the disruption controller has not written a status",
        "null-selector": "the selector is missing, and matches no pod",
        "protects-nothing": "it allows all its pods to be disrupted",
        "selects-nothing": "the selector matches no pod",
        "several-workloads": "its pods belong to more than one workload",
        "stale-status": "the status is older than the spec",
    },
    "Severity": {
        "error": "it blocks drains permanently, or an outage is imminent",
        "note": "it may be intended",
        "warning": "it is probably not intended",
    },
    "RemedyAction": {
        "CreateBudget": "create a budget for the workload",
        "Delete": "delete the object",
        "RaisePriority": "raise the priority of the pods",
        "Scale": "scale the workload",
        "Set": "set a field of the budget",
    },
    "check.ChangeKind": {
        "Created": "an object that the cluster does not have",
        "Deleted": "an object that the change deletes",
        "Unchanged": "the object is the same",
    },
    "RuleSeverity": {"error": "it fails the gate", "off": "it is not checked", "warn": "it is only reported"},
    "DriftKind": {
        "Better": "the figure is lower than in the previous run",
        "Fixed": "the previous run had it, and this one does not",
        "New": "only this run has it",
        "Worse": "the figure is higher than in the previous run",
    },
    "DrainRemedyAction": {
        "AddNode": "add a node like this one",
        "Delete": "delete the object",
        "Option": "add an option to the command",
        "Scale": "scale the workload",
        "Set": "set a field of the budget",
    },
    "AutoscalerRule": {
        "DoNotDisrupt": "Karpenter: `karpenter.sh/do-not-disrupt` is true",
        "LocalStorage": "Cluster Autoscaler: the pod has a hostPath or an emptyDir on disk",
        "NoController": "Cluster Autoscaler: no controller owns the pod",
        "NotSafeToEvict": "Cluster Autoscaler: `cluster-autoscaler.kubernetes.io/safe-to-evict` is false",
        "SystemPod": "Cluster Autoscaler: a pod of kube-system without a budget",
    },
    "QueueName": {
        "Active": "it is tried next",
        "Backoff": "it waits until its backoff ends",
        "Gated": "it has scheduling gates, or a plugin holds it",
        "Unschedulable": "it waits for an event that may help",
    },
    "Step": {"NominatedNodes": "the nodes that can be chosen"},
    "UpgradeEffect": {
        "EvictsNoPods": "it landed by evictions before, and now without any",
        "LandsElsewhere": "it lands on other nodes",
        "LandsNow": "it did not land before",
        "NoLongerLands": "it landed before",
        "Unknown": "what changes is unknown",
    },
    "DecisionKind": {
        "Bound": "it was bound to a node",
        "Nominated": "it was nominated to a node",
        "Unschedulable": "the attempt failed with a message",
    },
    "HistoryEventType": {
        "Added": "the object, or a pod on the node, was created",
        "Bound": "the pod was bound",
        "Changed": "the object changed",
        "Deleted": "the object, or a pod on the node, is gone",
        "Nominated": "the pod was nominated to a node",
        "Unschedulable": "an attempt to schedule the pod failed",
    },
    "OperationKind": {
        "allocate": "a task was allocated to a node",
        "evict": "a task was evicted",
        "pipeline": "resources that are being freed were reserved for a task",
        "unallocate": "an allocation was undone",
        "unevict": "an eviction was undone",
        "unpipeline": "such a reservation was undone",
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
        "Allocated": "the task gets the node at once",
        "Enqueued": "the job is admitted to its queue",
        "NoNode": "no node is feasible",
        "NotEnqueued": "the job is not admitted to its queue",
        "Pipelined": "the task waits for resources that are being freed",
        "PrePredicateFailed": "a check before all nodes failed",
    },
    "StatementOutcome": {
        "Committed": "its operations take effect",
        "Discarded": "its operations are undone",
    },
    "WorkloadOutcome": {"Pending": "it gets no quota"},
    "WorkloadChangeKind": {
        "borrowingLimit": "raise the borrowing limit",
        "nominalQuota": "raise the nominal quota",
        "pods": "request fewer pods",
        "priority": "raise the priority",
    },
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
    taken: dict[str, dict[str, str]] = {}
    for command in COMMANDS:
        request = request_of(command)
        for name, option in _options_of(request):
            words = option.help(request) if callable(option.help) else option.help
            taken.setdefault(name, {})[command] = words
    rules = {str(rule) for rule in RuleId}
    rows = [
        [f"`{name}`", _first_sentence(next(iter(commands.values()))), _listed(commands)]
        for name, commands in sorted(taken.items())
        if name.lstrip("-").partition("/")[0] not in rules
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
            _first_sentence(each.get("description", "")),
            ", ".join(f"`{key}`" for key in each["properties"]),
        ]
        for name, each in sorted(_definitions().items())
        if "properties" in each
    )
    return _rows(("record", "what it is", "keys"), rows)


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
