"""``kpreempt record``: what happens in a cluster, into a folder."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from kpreempt.cli.options import Connecting, Request


class RecordRequest(Request):
    """What the options of ``kpreempt record`` ask for."""

    to: Annotated[
        str | None, Option("--to", metavar="DIR", help="The folder to record into; it is made where it is not there.")
    ] = None
    info: Annotated[
        str | None, Option("--info", metavar="DIR", help="Record nothing, and say what the recording in DIR holds.")
    ] = None
    source: Annotated[
        str | None,
        Option("--from", metavar="DIR", help="With --redact: what is recorded in DIR, in the place of a live cluster."),
    ] = None
    redact: Annotated[
        bool,
        Option(
            "--redact",
            help="Write names as tokens and times without dates, as kpreempt snapshot does: at the end, when all names "
            "are known.",
        ),
    ] = False
    redact_map: Annotated[
        str | None,
        Option(
            "--redact-map",
            metavar="FILE",
            help="With --redact: which token stands for which name. Keep it to yourself.",
        ),
    ] = None
    duration: Annotated[
        str | None, Option("--for", metavar="TIME", help="End after this time: 10m, 8h.  [until Ctrl-C]")
    ] = None
    keep: Annotated[str, Option(metavar="TIME", help="Let go of what is older than this.")] = "24h"
    max_size: Annotated[str, Option(metavar="SIZE", help="Let go of what is oldest, to take no more disk.")] = "2Gi"
    base_every: Annotated[
        str, Option(metavar="TIME", help="Write the whole cluster this often, for moments after it to be found fast.")
    ] = "1h"
    quiet: Annotated[bool, Option("-q", "--quiet", help="Do not say what was recorded.")] = False
    connection: Connecting


def record(request: RecordRequest) -> int:
    """Record what the schedulers look at in a live cluster, and each change to it, until it is ended.

    The folder is a --snapshot of every command, with --at of any moment since: a time, or just before a pod's
    scheduler decided on it. It holds no more than kpreempt snapshot writes. Requests are GET, to list and to watch.
    """
    from kpreempt.cli.record_run import run_record

    return run_record(request)
