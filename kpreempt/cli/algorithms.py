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
    from kpreempt.schedulers.kube.history import Concern, changes_in
    from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM, PREFIX, RELEASES

    kube = []
    for minor, release in RELEASES.items():
        changes = changes_in(minor)
        told = [each.sentence for each in changes if each.concern is Concern.DECISIONS]
        kube.append((f"{PREFIX}{minor}", f"v{release}", told, len(changes) - len(told)))
    answer = algorithms_with(NEWEST_ALGORITHM, kube)
    write_stdout(render_answer(answer, request.output, RenderOptions(width=terminal_width())))
    return 0
