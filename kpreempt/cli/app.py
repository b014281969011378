"""The program as Typer sees it: its commands and the options that stand before any of them."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Annotated

import typer

from kpreempt.cli.command_line import OF_PROGRAM, AnswerCommand, Program, command_of
from kpreempt.cli.requests import COMMANDS
from kpreempt.library.options import Request

# It tells of the others.
_HELP = "help"


def make_app(asked: str = _HELP) -> typer.Typer:
    """The program, as far as its first word needs it: to make all options of all commands takes time.

    Where a command is ``asked`` for by its name, it is there alone; an option of the program itself, or no word at all,
    needs no more than what the commands are for.
    """
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
    names = [asked] if asked in COMMANDS and asked != _HELP else list(COMMANDS)
    lists_only = not asked or asked in OF_PROGRAM
    for name in names:
        module, _, class_name = COMMANDS[name].request.partition(":")
        request = getattr(import_module(f"kpreempt.cli.{module}"), class_name)
        run = _told(request) if lists_only else command_of(name, request, COMMANDS[name].run)
        app.command(name, cls=AnswerCommand)(run)
    app.callback(invoke_without_command=True)(_kpreempt)
    return app


def _told(request: type[Request]) -> Callable[[], None]:
    """What is there of a command that is only listed."""

    def listed() -> None:
        raise AssertionError("a command that is only listed is never run")

    listed.__doc__ = request.__doc__
    return listed


def _print_version(extra_fields: bool) -> None:
    if extra_fields:
        from kpreempt import __version__

        typer.echo(f"kpreempt {__version__}")
        raise typer.Exit


def _kpreempt(
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
