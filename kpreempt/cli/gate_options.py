"""The options of a gate, each declared once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from kpreempt.cli.options import Group

if TYPE_CHECKING:
    from kpreempt.cli.gate_settings import GateFlags

Config = Annotated[
    str | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="The rules' file, not the kpreempt.toml of this folder or of one above it in the repository.",
    ),
]
MaxPdbViolations = Annotated[
    str | None,
    typer.Option(
        "--max-pdb-violations",
        metavar="N|off",
        help="So many victims may go against their PodDisruptionBudgets.  [0]",
    ),
]
MaxVictims = Annotated[
    str | None, typer.Option("--max-victims", metavar="N|off", help="So many pods may be evicted in all.  [off]")
]
MaxVictimsPerWorkload = Annotated[
    str | None,
    typer.Option("--max-victims-per-workload", metavar="N|off", help="So many of each workload.  [off]"),
]
ForbidVictims = Annotated[
    list[str] | None,
    typer.Option(
        "--forbid-victims",
        metavar="WHAT=VALUE",
        help="Pods that must not be evicted: namespace=NAME, label=SELECTOR or priority-class=NAME; * is any text. "
        "Repeatable.",
    ),
]
RequireSchedulable = Annotated[
    bool | None,
    typer.Option(
        "--require-schedulable/--no-require-schedulable", help="Every pod of the change must find a node.  [on]"
    ),
]
MaxCascadeDepth = Annotated[
    str | None,
    typer.Option("--max-cascade-depth", metavar="N|off", help="So many evictions may follow from one another.  [1]"),
]
MaxPending = Annotated[
    str | None,
    typer.Option("--max-pending", metavar="N|off", help="So many pods that ran may have no node in the end.  [0]"),
]
MaxStranded = Annotated[
    str | None,
    typer.Option("--max-stranded", metavar="N|off", help="So much may be left without something that it needs.  [0]"),
]
LostPods = Annotated[
    str | None,
    typer.Option("--lost-pods", metavar="N|off", help="So many pods may have to go that nothing makes again.  [0]"),
]
MaxDeletions = Annotated[
    str | None,
    typer.Option("--max-deletions", metavar="N|off", help="So many workloads may go along with what is deleted.  [0]"),
]
QuotaRefusals = Annotated[
    str | None,
    typer.Option("--quota-refusals", metavar="N|off", help="So many pods may a ResourceQuota refuse.  [0]"),
]
ForbidLoops = Annotated[
    bool | None,
    typer.Option("--forbid-loops/--no-forbid-loops", help="Evictions must come to an end.  [on]"),
]
MaxSnapshotAge = Annotated[
    str | None,
    typer.Option(
        "--max-snapshot-age", metavar="TIME|off", help="How old the snapshot may be: 30m, 12h; unknown fails.  [off]"
    ),
]
Waive = Annotated[
    list[str] | None,
    typer.Option(
        "--waive",
        metavar="RULE[=SUBJECT]",
        help="Let a rule pass, or what it says of a subject: max-pending='Deployment dev/*'. Repeatable.",
    ),
]
BaselineFile = Annotated[
    str | None, typer.Option("--baseline", metavar="FILE", help="What is accepted, as --write-baseline wrote it.")
]
WriteBaseline = Annotated[
    str | None,
    typer.Option("--write-baseline", metavar="FILE", help="Write what fails now to FILE, to be accepted until then."),
]
Expires = Annotated[
    str | None,
    typer.Option("--expires", metavar="DATE", help="The last day on which the new baseline counts: 2026-12-31."),
]
_OPTIONS = {
    "config": Config,
    "max_pdb_violations": MaxPdbViolations,
    "max_victims": MaxVictims,
    "max_victims_per_workload": MaxVictimsPerWorkload,
    "forbid_victims": ForbidVictims,
    "require_schedulable": RequireSchedulable,
    "max_cascade_depth": MaxCascadeDepth,
    "max_pending": MaxPending,
    "max_stranded": MaxStranded,
    "lost_pods": LostPods,
    "max_deletions": MaxDeletions,
    "quota_refusals": QuotaRefusals,
    "forbid_loops": ForbidLoops,
    "max_snapshot_age": MaxSnapshotAge,
    "waive": Waive,
    "baseline": BaselineFile,
    "write_baseline": WriteBaseline,
    "expires": Expires,
}


def _gate_flags(given: dict[str, Any]) -> GateFlags:
    from kpreempt.cli.gate_settings import GateFlags

    return GateFlags(**{name: value for name, value in given.items() if value is not None})


Gate = Annotated["GateFlags", Group(_OPTIONS, _gate_flags)]
