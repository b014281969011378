"""``kpreempt rules``: the rules of the gate, and what each means."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.options import Request


class RulesRequest(Request):
    """What the arguments of ``kpreempt rules`` ask for."""

    name: Annotated[str | None, Argument(metavar="[NAME]", help="A rule, to be explained with an example.")] = None
    config: Annotated[
        str | None,
        Option("--config", metavar="FILE", help="The rules' file, not the kpreempt.toml that check would find."),
    ] = None
    output: Annotated[
        str,
        Option(
            "-o", "--output", metavar="text|json|yaml|name", help="How to list them; jsonpath=, custom-columns=, too."
        ),
    ] = "text"


def rules(request: RulesRequest) -> int:
    """List the rules that kpreempt check puts to a change, or explain one.

    Each with its default, what it counts for, and what it asks for. A rule that is named is told with an example that
    breaks it, and how that is mended. Rules of your own, in kpreempt.toml, come last.
    """
    from kpreempt.analysis.check.gate import rule_named
    from kpreempt.cli.output import parse_outputs, write_stdout
    from kpreempt.cli.terminal import terminal_width
    from kpreempt.gate_rules import RuleId
    from kpreempt.library.gate.settings import read_config
    from kpreempt.report.options import RenderOptions
    from kpreempt.report.rules import rules_of

    (output,) = parse_outputs([request.output], ("text", "json", "yaml", "name"))
    custom = [each.rule for each in read_config(request.config)[1].rules]
    every = [*RuleId, *custom]
    asked = every if request.name is None else [rule_named(request.name, "kpreempt rules", custom)]
    write_stdout(output.render(rules_of(asked), RenderOptions(width=terminal_width())))
    return 0
