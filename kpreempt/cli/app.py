"""The program as Typer sees it: its commands and the options that stand before any of them."""

from __future__ import annotations

from typing import Annotated

import typer

from kpreempt.cli.about import help_command, version
from kpreempt.cli.algorithms import algorithms
from kpreempt.cli.at_risk import at_risk
from kpreempt.cli.batch import batch
from kpreempt.cli.budgets import budgets
from kpreempt.cli.check import check
from kpreempt.cli.command_line import AnswerCommand, Program
from kpreempt.cli.compare import compare
from kpreempt.cli.completion_command import completion
from kpreempt.cli.drain import drain
from kpreempt.cli.explain import explain
from kpreempt.cli.history import history
from kpreempt.cli.options import with_options
from kpreempt.cli.pending import pending
from kpreempt.cli.plugins import plugins
from kpreempt.cli.queue import queue
from kpreempt.cli.record import record
from kpreempt.cli.rules import rules
from kpreempt.cli.snapshot import snapshot
from kpreempt.cli.verify import verify
from kpreempt.cli.volcano import volcano
from kpreempt.cli.who_preempted import who_preempted

app = typer.Typer(
    name="kpreempt",
    cls=Program,
    # Rich's help costs as much start-up time as the rest of the program.
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    # kpreempt.cli.completion does it: within a deadline, with names from the cluster, and for kubectl, too.
    add_completion=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
# In the order of the help.
for _command in (
    explain,
    pending,
    queue,
    who_preempted,
    at_risk,
    check,
    drain,
    rules,
    budgets,
    volcano,
    batch,
    algorithms,
    plugins,
    compare,
    completion,
    snapshot,
    record,
    history,
    verify,
    help_command,
    version,
):
    app.command(_command.__name__.removesuffix("_command").replace("_", "-"), cls=AnswerCommand)(with_options(_command))


def _print_version(wanted: bool) -> None:
    if wanted:
        from kpreempt import __version__

        typer.echo(f"kpreempt {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def kpreempt(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Where a Kubernetes pod would land, whom it would evict, which PodDisruptionBudgets break, and why.

    Nothing is ever changed in a cluster: the scheduler's decision is computed from a snapshot.

    Exit codes: 0 answered, 1 a gate or --strict failed, 2 wrong usage, 3 input unreadable or pod not found,
    4 a bug of kpreempt, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
