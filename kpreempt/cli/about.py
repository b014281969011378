"""What kpreempt is and knows: its version, schedulers and rules, its help, and the completion scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.cli.requests import AlgorithmsRequest, CompletionRequest, HelpRequest, RulesRequest, VersionRequest

if TYPE_CHECKING:
    from kpreempt.report.algorithms import Algorithms
    from kpreempt.report.answers import Answer


def version(request: VersionRequest) -> int:
    """Answer the request and return the exit code."""
    import platform

    from kpreempt import __version__
    from kpreempt.report.algorithms import versions_of

    return _print(request, versions_of(__version__, platform.python_version(), supported_schedulers()))


def help_command(request: HelpRequest) -> int:  # noqa: ARG001 - the command line is rewritten before it gets here
    """Answer the request and return the exit code."""
    return 0


def rules(request: RulesRequest) -> int:
    """Answer the request and return the exit code."""
    from kpreempt.analysis.check.gate import find_rule
    from kpreempt.gate_rules import RuleId
    from kpreempt.library.gate.settings import read_config
    from kpreempt.report.rules import rules_of

    custom = [each.rule for each in read_config(request.config)[1].rules]
    every = [*RuleId, *custom]
    selected = every if request.name is None else [find_rule(request.name, "kpreempt rules", custom)]
    return _print(request, rules_of(selected))


def completion(request: CompletionRequest) -> int:
    """Answer the request and return the exit code."""
    from kpreempt.cli.completion.scripts import SCRIPTS
    from kpreempt.errors import UsageError, nearest

    if request.shell not in SCRIPTS:
        raise UsageError(f"no completion script for {request.shell!r}", hint=nearest(request.shell, SCRIPTS))
    import typer

    typer.echo(SCRIPTS[request.shell], nl=False)
    return 0


def algorithms(request: AlgorithmsRequest) -> int:
    """Answer the request and return the exit code."""
    return _print(request, supported_schedulers())


def _print(request: VersionRequest | RulesRequest | AlgorithmsRequest, answer: Answer) -> int:
    """Print the answer in the requested format and return the exit code."""
    from kpreempt.cli.output import parse_outputs, write_stdout
    from kpreempt.cli.terminal import terminal_width
    from kpreempt.report.answers import format_names
    from kpreempt.report.options import RenderOptions

    (output,) = parse_outputs([request.output], format_names(request.answer))
    write_stdout(output.render(answer, RenderOptions(width=terminal_width())))
    return 0


def supported_schedulers() -> Algorithms:
    """List the supported schedulers, with what is new in each."""
    from kpreempt.report.algorithms import algorithms_with
    from kpreempt.scheduler_table import RELEASES
    from kpreempt.schedulers.kube.history import Concern, changes_in

    news = {}
    for minor in RELEASES:
        changes = changes_in(minor)
        decision_changes = [each.sentence for each in changes if each.concern is Concern.DECISIONS]
        news[minor] = (decision_changes, len(changes) - len(decision_changes))
    return algorithms_with(news)
