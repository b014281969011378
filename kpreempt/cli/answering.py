"""What the commands about many pods share: which pods, the time of the answer, and writing it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from datetime import datetime

import msgspec

from kpreempt.analysis.pod_selection import PodSelection, parse_selector
from kpreempt.cli.output import Output, whole_file, write_stdout
from kpreempt.errors import UsageError
from kpreempt.model.cluster import ClusterSnapshot
from kpreempt.report.answers import Answer, render_answer
from kpreempt.report.options import RenderOptions


def select_pods(namespace: str | None, selector: str | None, *, is_everywhere: bool) -> PodSelection:
    """The pods that ``-n``, ``-A`` and ``-l`` ask for; without any of them, all. Raises ``UsageError``."""
    if namespace and is_everywhere:
        raise UsageError("-n and -A contradict each other")
    return PodSelection(namespace or "", parse_selector(selector or ""))


def time_of_snapshot(cluster: ClusterSnapshot, now: datetime, *, is_given: bool) -> datetime:
    """What ages count to: ``now`` where it ``is_given`` or nothing else is known, else the time of the dump."""
    return now if is_given or cluster.taken_at is None else cluster.taken_at


def write_answer(answer: Answer, outputs: Sequence[Output], options: RenderOptions, *, colour: bool) -> bool:
    """Write the files, then standard output, which alone has colour. False where its reader has gone away."""
    with ExitStack() as stack:
        for output in outputs:
            if output.path:
                stack.enter_context(whole_file(output.path)).write(render_answer(answer, output.format, options))
    on_stdout = msgspec.structs.replace(options, colour=colour)
    texts = (render_answer(answer, output.format, on_stdout) for output in outputs if not output.path)
    return all(write_stdout(text) for text in texts)
