"""``kpreempt algorithms``: the schedulers that can be asked, and what each does differently."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import Request


class AlgorithmsRequest(Request):
    """What the options of ``kpreempt algorithms`` ask for."""

    output: Annotated[str, Option("-o", "--output", metavar="text|json|yaml|name", help="How to list them.")] = "text"


def algorithms(request: AlgorithmsRequest) -> int:
    """List the schedulers that --algorithm can name, and what each does differently.

    The differences are those in preemption: who may be evicted, on which node, and what happens then.
    """
    from kpreempt.cli.output import write_stdout
    from kpreempt.cli.terminal import terminal_width
    from kpreempt.report.algorithms import algorithms_with
    from kpreempt.report.answers import render_answer
    from kpreempt.report.options import RenderOptions
    from kpreempt.schedulers.kube.history import changes_in
    from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM, PREFIX, RELEASES

    kube = [
        (f"{PREFIX}{minor}", f"v{release}", [each.sentence for each in changes_in(minor)])
        for minor, release in RELEASES.items()
    ]
    answer = algorithms_with(NEWEST_ALGORITHM, kube)
    write_stdout(render_answer(answer, request.output, RenderOptions(width=terminal_width())))
    return 0
