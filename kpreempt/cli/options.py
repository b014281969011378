"""The options that commands share, each declared once."""

from __future__ import annotations

from typing import Annotated

import typer

from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM

Snapshots = Annotated[
    list[str] | None,
    typer.Option(
        "--snapshot",
        metavar="PATH",
        help="What kubectl get, cluster-info dump or kwokctl wrote: file, directory or archive, - for standard input. "
        "Repeatable; all are merged.",
    ),
]
SkipBadObjects = Annotated[
    bool, typer.Option("--skip-bad-objects", help="Set objects that cannot be read aside, list them, and go on.")
]
Outputs = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT[=FILE]",
        help="text (default), json, yaml, jsonl, name, wide or markdown, into FILE if given. Repeatable.",
    ),
]
# The formats of answers that are not verdicts.
AnswerOutputs = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        "--output",
        metavar="FORMAT[=FILE]",
        help="text (default), json, yaml, jsonl, name or markdown, into FILE if given. Repeatable.",
    ),
]
Selector = Annotated[
    str | None,
    typer.Option("-l", "--selector", metavar="SELECTOR", help="Only pods with these labels: app=web,tier!=db"),
]
AllNamespaces = Annotated[bool, typer.Option("-A", "--all-namespaces", help="Pods of all namespaces.")]
_DIFFERENCES = f"(default: {NEWEST_ALGORITHM}); kpreempt algorithms says how they differ."
_ALGORITHMS = f"kube-1.8|kube-1.13|kube-1.18|{NEWEST_ALGORITHM}"
Algorithm = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        metavar=_ALGORITHMS,
        help=f"Which version's scheduler decides {_DIFFERENCES}",
    ),
]
# That of explain, which answers for Volcano, too.
AnyAlgorithm = Annotated[
    str | None,
    typer.Option(
        "--algorithm",
        metavar=f"{_ALGORITHMS}|volcano-1.8",
        help=f"Which scheduler decides {_DIFFERENCES}",
    ),
]
VolcanoActions = Annotated[
    str | None,
    typer.Option(
        "--actions",
        metavar="NAME,NAME,...",
        help="What if Volcano's actions were these: enqueue,allocate,backfill,preempt,reclaim (volcano-1.8).",
    ),
]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=0, help="Play N sessions with chance drawn anew (volcano-1.8).")
]
Seed = Annotated[
    int, typer.Option("--seed", metavar="NUMBER", help="What the draws of --runs start from (default: 0).")
]
SchedulerConfig = Annotated[
    str | None, typer.Option(metavar="FILE", help="The scheduler has this KubeSchedulerConfiguration.")
]
PolicyConfig = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="The scheduler has this Policy file; for kube-1.8, kube-1.13 and kube-1.18."),
]
FeatureGates = Annotated[
    list[str] | None, typer.Option(metavar="GATE=true,...", help="These feature gates are set so. Repeatable.")
]
Plugins = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="MODULE:CLASS",
        help="A plugin of your own: MODULE:CLASS, FILE.py:CLASS or the NAME of one that is installed. It runs where "
        "--scheduler-config enables it, and without a configuration after the default ones. Repeatable.",
    ),
]
CallExtenders = Annotated[
    bool,
    typer.Option("--call-extenders", help="Ask the extenders of the configuration, over HTTP. Without it none is."),
]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="List everything, however long.")]
Colour = Annotated[
    str, typer.Option("--color", metavar="WHEN", help="auto (a terminal, and NO_COLOR is not set), always or never.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Exit 1 where the answer rests on something that is not modelled.")
]
ProfileJson = Annotated[
    str | None,
    typer.Option("--profile-json", metavar="FILE", help="Write where the time goes to FILE: seconds by phase, memory."),
]
Now = Annotated[
    str | None,
    typer.Option("--now", metavar="TIME", help="Count ages up to this time (2026-11-21T03:12:00Z), not the clock's."),
]
Jobs = Annotated[
    int | None,
    typer.Option("--jobs", metavar="N", min=1, help="Work on so many cores where that pays. Default: all there are."),
]
