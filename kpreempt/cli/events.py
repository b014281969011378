"""``kpreempt explain --event``: what a pasted text says, without a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kpreempt.cli.clusters import standard_input
from kpreempt.cli.runner import CommandRun
from kpreempt.errors import UsageError
from kpreempt.files import name_of, read_file, read_stream
from kpreempt.library.events import explain_pasted
from kpreempt.library.explain import PodName, parse_pod_name
from kpreempt.library.options import options_of
from kpreempt.snapshot.sources import STDIN, STDIN_NAME

if TYPE_CHECKING:
    from kpreempt.cli.requests import ExplainRequest

# The options that need neither a cluster nor a scheduler.
_APPLY = frozenset(
    (
        *("event", "pod", "name", "namespace", "now"),
        *("outputs", "verbose", "color", "brief", "profile_json", "max_unpacked"),
    )
)


def explain_event(request: ExplainRequest) -> int:
    """Answer the request, write the answer to its outputs, and return the exit code, which is never a verdict's."""
    for name, option in options_of(type(request)).items():
        if name in request.set_options and name not in _APPLY and option.names:
            raise UsageError(
                f"{option.long_name} does not apply to --event, which explains a text and reads no cluster",
                hint="without --event, explain a pod by its name or manifest",
            )
    run = CommandRun(request, "ExplainedEvents")
    target = parse_pod_name(request, request.namespace or "")
    if target is not None and not isinstance(target, PodName):
        raise UsageError("with --event, name a pod, or none", hint="kpreempt explain --event FILE NAME -n NAMESPACE")
    path = request.event or ""
    with run.stopwatch.phase("read"):
        source = STDIN_NAME if path == STDIN else name_of(path)
        content = read_stream(standard_input(), source) if path == STDIN else read_file(path, source)
        found = explain_pasted(
            content,
            source,
            request.input_limits,
            namespace=target.namespace if target is not None else request.namespace or "",
            pod=target.name.rpartition("/")[2] if target is not None else "",
        )
    run.write_once(found, run.now())
    return run.exit_code(found.assumptions)
