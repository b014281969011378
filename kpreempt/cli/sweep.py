"""``kpreempt sweep``: many clusters, many questions, several schedulers, into a Parquet dataset."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.options import After, Now, Request, Strict
from kpreempt.scheduler_table import DEFAULT_ALGORITHM

_Text = str | None


class SweepRequest(Request):
    """What the options of ``kpreempt sweep`` ask for."""

    words: Annotated[
        list[str] | None,
        Argument(metavar="[PLAN | report DIR]", help="The plan's file (TOML), or the dataset to report on."),
    ] = None
    snapshots: Annotated[
        list[str],
        Option(
            "--snapshots",
            metavar="PATH|URL|GLOB",
            help="Clusters: each match is one, as --snapshot takes it; s3:// and others by fsspec. Repeatable.",
        ),
    ] = []
    contexts: Annotated[_Text, Option("--contexts", metavar="NAME,...", help="Live clusters, by context.")] = None
    kubeconfig: Annotated[_Text, Option("--kubeconfig", metavar="FILE", help="The kubeconfig, not $KUBECONFIG.")] = None
    files: Annotated[
        list[str],
        Option("-f", "--filename", metavar="FILE", help="Ask where the pods of this manifest land. Repeatable."),
    ] = []
    priorities: Annotated[
        _Text, Option("--priorities", metavar="N,...", help="Ask about -f with each of these priorities.")
    ] = None
    ask: Annotated[list[str], Option("--ask", metavar="pending|budgets", help="Ask this, too. Repeatable.")] = []
    algorithms: Annotated[
        _Text,
        Option(
            "--algorithms",
            metavar=f"auto,{DEFAULT_ALGORITHM},...",
            help="The schedulers that decide, each anew.  [auto]",
        ),
    ] = None
    max_unpacked: Annotated[
        _Text, Option("--max-unpacked", metavar="SIZE", help="How much one snapshot may unpack to: 4Gi.  [1Gi]")
    ] = None
    skip_bad_objects: Annotated[
        bool, Option("--skip-bad-objects", help="Skip unreadable objects and files instead of failing, and list them.")
    ] = False
    now: Now = None
    to: Annotated[_Text, Option("--to", metavar="DIR", help="The dataset's folder; it is made.")] = None
    resume: Annotated[bool, Option("--resume", help="Do only what is missing in --to, and what failed.")] = False
    scheduler: Annotated[
        _Text, Option("--scheduler", metavar="tcp://HOST:PORT", help="Work at this Dask cluster, and not here.")
    ] = None
    workers: Annotated[
        int | None,
        Option("--workers", metavar="N", min=1, help="So many processes here. Default: what cores and memory allow."),
    ] = None
    worker_memory: Annotated[
        _Text, Option("--worker-memory", metavar="SIZE", help="What each of them may take: 2Gi.")
    ] = None
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown or html, into FILE if given; html for report. "
            "Repeatable.",
        ),
    ] = []
    verbose: Annotated[bool, Option("-v", "--verbose", help="List everything, however long.")] = False
    quiet: Annotated[bool, Option("-q", "--quiet", help="No line for each cluster.")] = False
    colour: Annotated[
        str, Option("--color", metavar="WHEN", help="auto (a terminal, and NO_COLOR is not set), always or never.")
    ] = "auto"
    strict: Annotated[Strict, After("colour")] = False


def sweep(request: SweepRequest) -> int:
    """Put many questions to many clusters, with Dask, and write the answers as a Parquet dataset.

    Each cluster is read once and asked every question of the plan, by each scheduler. A cluster that cannot be read is
    a row of failures, and the others go on; a partition of the dataset is whole or not there. A worker that dies is
    replaced. sweep report DIR makes a page of a dataset.

    Exit codes: 0 all is answered, 3 there are failures (they are rows), 1 with --strict where an answer may come out
    otherwise. Needs pip install 'kpreempt[fleet]'.
    """
    from kpreempt.cli.sweep_run import run_sweep

    return run_sweep(request)
