"""``kpreempt verify``: whether the real scheduler did what is predicted."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from kpreempt.cli.options import AnswerRequest

_OF_INPUT = ["snapshots", "at", "skip_bad_objects", "assume_none"]
_NOT_ASKED = [*_OF_INPUT, "namespace", "all_namespaces", "selector", "policy_config"]


class VerifyRequest(AnswerRequest, without=[*_NOT_ASKED, "strict", "now", "jobs"]):
    """What the options of ``kpreempt verify`` ask for."""

    folder: Annotated[
        str | None, Argument(metavar="[DIR]", help="A recording: what kpreempt record --to DIR made.")
    ] = None
    duration: Annotated[
        str | None, Option("--for", metavar="TIME", help="Without DIR: record the live cluster for so long, 10m.")
    ] = None
    fail_below: Annotated[
        float | None,
        Option(metavar="PERCENT", help="Exit 1 where the score is below this, or nothing could be compared: 99.5."),
    ] = None
    differences: Annotated[
        str | None,
        Option(
            metavar="DIR",
            help="For each difference without an explanation, write a file for kpreempt batch, under other names.",
        ),
    ] = None
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown or openmetrics, into FILE if given. Repeatable.",
        ),
    ] = []


def verify(request: VerifyRequest) -> int:
    """Hold every decision that the real scheduler took against what is predicted from the state just before it.

    Pods that were bound, nominated with the victims that were evicted for them, or refused with a message, in a
    recording or in a live cluster that is recorded for a while. A decision that is the one of a moment earlier is told
    as a race, with what changed in between, and counts neither for the score nor against it.
    """
    from kpreempt.cli.verify_run import run_verify

    return run_verify(request)
