"""The program as Typer sees it: its commands and the global options."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from kpreempt.cli.command_line import OF_PROGRAM, AnswerCommand, Program, command_of
from kpreempt.cli.requests import COMMANDS
from kpreempt.library.options import Request

# It describes the others.
_HELP = "help"


def make_app(requested: str = _HELP) -> typer.Typer:
    """Build the program, limited to what its first word needs, because building all options of all commands takes time.

    If the first word is the name of a command (``requested``), only that command is built. Options of the program
    itself, and an empty command line, only need the summaries of the commands.
    """
    app = typer.Typer(
        name="kpreempt",
        cls=Program,
        # Rich's help takes as long to load as the rest of the program.
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        # kpreempt.cli.completion does this instead: within a deadline, with names from the cluster, and for kubectl
        # too.
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    names = [requested] if requested in COMMANDS and requested != _HELP else list(COMMANDS)
    lists_only = not requested or requested in OF_PROGRAM
    for name in names:
        module, _, class_name = COMMANDS[name].request.partition(":")
        request = getattr(import_module(f"kpreempt.cli.{module}"), class_name)
        run = _placeholder(request) if lists_only else command_of(name, request, COMMANDS[name].run)
        app.command(name, cls=AnswerCommand)(run)
    app.callback(invoke_without_command=True)(_kpreempt)
    return app


def _placeholder(request: type[Request]) -> Callable[[], None]:
    """A stand-in for a command that is only listed."""

    def listed() -> None:
        raise AssertionError("a command that is only listed is never run")

    listed.__doc__ = request.__doc__
    return listed


def _print_version(is_requested: bool) -> None:
    if is_requested:
        from kpreempt import __version__

        typer.echo(f"kpreempt {__version__}")
        raise typer.Exit


def _kpreempt(
    context: typer.Context,
    _version: Annotated[
        bool, typer.Option("--version", help="Show the version and exit.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Show which pods a Kubernetes pod preempts, and why.

    Predicts where a pod lands, which pods it evicts, and which PodDisruptionBudgets that violates. The scheduler's
    decision is computed from a snapshot. kpreempt never changes a cluster.

    Exit codes: 0 answered, 1 a check or --strict failed, 2 usage error, 3 input cannot be read or pod not found, 4 a
    bug in kpreempt, 130 interrupted.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())
