"""``kpreempt algorithms``: the schedulers that can be asked, and what each does differently."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.options import Request

if TYPE_CHECKING:
    from kpreempt.report.algorithms import Algorithms


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
    from kpreempt.report.options import RenderOptions

    (output,) = parse_outputs([request.output], ("text", "json", "yaml", "name"))
    write_stdout(output.render(modelled(), RenderOptions(width=terminal_width())))
    return 0


def modelled() -> Algorithms:
    """The schedulers that are modelled, with what is new in each."""
    from kpreempt.report.algorithms import algorithms_with
    from kpreempt.scheduler_table import RELEASES
    from kpreempt.schedulers.kube.history import Concern, changes_in

    news = {}
    for minor in RELEASES:
        changes = changes_in(minor)
        told = [each.sentence for each in changes if each.concern is Concern.DECISIONS]
        news[minor] = (told, len(changes) - len(told))
    return algorithms_with(news)
