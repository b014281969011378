"""``kpreempt help`` and ``kpreempt version``: how commands are used, which kpreempt this is and what it models."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.options import Request


class VersionRequest(Request):
    """What the options of ``kpreempt version`` ask for."""

    output: Annotated[
        str,
        Option("-o", "--output", metavar="text|json|yaml|name", help="How to write it; jsonpath=TEMPLATE, too."),
    ] = "text"


def version(request: VersionRequest) -> int:
    """Show the version of kpreempt, and the versions of the schedulers that it models.

    No cluster is asked.
    """
    import platform

    from kpreempt import __version__
    from kpreempt.cli.algorithms import modelled
    from kpreempt.cli.output import parse_outputs, write_stdout
    from kpreempt.report.options import RenderOptions
    from kpreempt.report.versions import versions_of

    answer = versions_of(__version__, platform.python_version(), modelled())
    (output,) = parse_outputs([request.output], ("text", "json", "yaml", "name"))
    write_stdout(output.render(answer, RenderOptions()))
    return 0


class HelpRequest(Request):
    """What the options of ``kpreempt help`` ask for."""

    command: Annotated[str | None, Argument(metavar="COMMAND", help="Which command.")] = None


def help_command(request: HelpRequest) -> int:  # noqa: ARG001 - the command line is rewritten before it gets here
    """Show a command's options and examples, as its --help does."""
    return 0
