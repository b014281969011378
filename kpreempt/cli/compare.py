"""``kpreempt compare``: several schedulers side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from kpreempt.cli.connection_options import connects
from kpreempt.cli.options import (
    AnswerOutputs,
    CallExtenders,
    Colour,
    Now,
    Plugins,
    ProfileJson,
    SkipBadObjects,
    Snapshots,
    Strict,
    Verbose,
)
from kpreempt.schedulers.kube.versions import NEWEST_ALGORITHM

if TYPE_CHECKING:
    from kpreempt.snapshot.live.flags import ConnectionFlags

Texts = list[str] | None
Text = str | None


@connects
def compare(
    *,
    connection: ConnectionFlags,
    pod: Annotated[Text, Argument(metavar="[pod/]NAME", help="A pod that is in the cluster, in -n NS.")] = None,
    algorithms: Annotated[
        Text,
        Option(metavar="NAME,NAME,...", help=f"Two or more, the first to compare with: kube-1.13,{NEWEST_ALGORITHM}"),
    ] = None,
    file: Annotated[
        Texts, Option("-f", "--filename", metavar="FILE", help="A manifest: a pod or anything with a pod template.")
    ] = None,
    select: Annotated[Texts, Option(metavar="KIND/NAME", help="Of the manifest, only this one. Repeatable.")] = None,
    batch: Annotated[Text, Option(metavar="FILE", help="Scenarios as JSON lines, as for kpreempt batch.")] = None,
    snapshot: Snapshots = None,
    namespace: Annotated[
        Text, Option("-n", "--namespace", metavar="NS", help="Where the pod is; of pending pods, only those there.")
    ] = None,
    plugin: Plugins = None,
    call_extenders: CallExtenders = False,
    output: AnswerOutputs = None,
    verbose: Verbose = False,
    color: Colour = "auto",
    fail_on_difference: Annotated[
        bool, Option("--fail-on-difference", help="Exit 1 where not all algorithms decide the same.")
    ] = False,
    strict: Strict = False,
    skip_bad_objects: SkipBadObjects = False,
    now: Now = None,
    profile_json: ProfileJson = None,
) -> int:
    """Say where several algorithms would put the same pods, whom each evicts, and at which step they part.

    The pods are one of the cluster (NAME), those of a manifest (-f), those of scenarios (--batch), or else every pod
    that is pending. Each is judged alone, as if it came next.

    The same: the pod lands, evicts or lands nowhere with each of them, on the same nodes, with the same victims. An
    algorithm may have a configuration and feature gates of its own, so that one can be compared with itself:
    kube-1.36,kube-1.36@FILE,kube-1.36:GATE=false.
    """
    from kpreempt.cli.compare_run import CompareRequest, run_compare
    from kpreempt.cli.extensions import Extensions

    return run_compare(
        CompareRequest(
            pod=pod,
            algorithms=algorithms or "",
            files=file or [],
            select=select or [],
            batch=batch,
            snapshots=snapshot or [],
            connection=connection,
            namespace=namespace,
            scheduler_config=None,
            feature_gates=[],
            extensions=Extensions(tuple(plugin or ()), call_extenders),
            outputs=output or [],
            verbose=verbose,
            colour=color,
            fail_on_difference=fail_on_difference,
            strict=strict,
            skip_bad_objects=skip_bad_objects,
            now=now,
            profile_json=profile_json,
        )
    )
