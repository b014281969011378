"""The command ``kpreempt mcp``."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from kpreempt.cli.runner import time_of_answer
from kpreempt.errors import UsageError
from kpreempt.library.cluster import Cluster
from kpreempt.mcp.server import serve

if TYPE_CHECKING:
    from kpreempt.cli.requests import McpRequest


def mcp(request: McpRequest) -> int:
    """Serve until standard input ends and return the exit code."""
    if "-" in request.snapshots:
        raise UsageError("--snapshot - is not supported: standard input belongs to the MCP client")
    try:
        for stream in (sys.stdin, sys.stdout):
            stream.fileno()
    except (AttributeError, OSError, ValueError):
        raise UsageError("standard input or output is closed; this command must be started by an MCP client") from None
    now = time_of_answer(request.now) if request.now else None
    most, skips = request.input_limits.limit, request.skip_bad_objects

    def read() -> Cluster:
        if request.snapshots:
            read = Cluster.load(
                *request.snapshots,
                at=request.at,
                skip_bad_objects=skips,
                assume_none=request.assume_none,
                max_unpacked=most,
                now=now,
            )
        else:
            flags = {name: getattr(request.connection, name) for name in request.connection.__struct_fields__}
            read = Cluster.fetch(skip_bad_objects=skips, assume_none=request.assume_none, now=now, **flags)
        if request.algorithm or request.scheduler_config:
            return read.with_scheduler(request.algorithm or "auto", configuration=request.scheduler_config)
        return read

    # Report problems with the options or the cluster at once.
    first = read()
    serve((lambda: first) if request.snapshots else read)
    return 0
