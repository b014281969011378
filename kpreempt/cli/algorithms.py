"""``kpreempt algorithms``: the schedulers that can be asked, and what each does differently."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import Request


class AlgorithmsRequest(Request):
    """What the options of ``kpreempt algorithms`` ask for."""

    output: Annotated[
        str,
        Option(
            "-o", "--output", metavar="text|json|yaml|name", help="How to list them; jsonpath=, custom-columns=, too."
        ),
    ] = "text"


def algorithms(request: AlgorithmsRequest) -> int:
    """List the schedulers that --algorithm can name, and what each does differently.

    The differences are those in preemption: who may be evicted, on which node, and what happens then.
    """
    from kpreempt.cli.output import parse_outputs, write_stdout
    from kpreempt.cli.terminal import terminal_width
    from kpreempt.report.algorithms import algorithms_with
    from kpreempt.report.options import RenderOptions
    from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM, NEWEST_RELEASE

    answer = algorithms_with(NEWEST_ALGORITHM, NEWEST_RELEASE)
    (output,) = parse_outputs([request.output], ("text", "json", "yaml", "name"))
    write_stdout(output.render(answer, RenderOptions(width=terminal_width())))
    return 0
