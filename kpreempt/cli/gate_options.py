"""The requests of ``check`` and ``drain``: a simulation, the rules that check it, and their files."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from kpreempt.cli.requests import (
    CONFIG,
    WITH_VOLCANO,
    WhatIfRequest,
    manifest_options,
)
from kpreempt.errors import UsageError
from kpreempt.gate_rules import GateFlags, OptionType, RuleId
from kpreempt.library.options import GATE, OUTPUT, THE_CHANGE, Group, Option
from kpreempt.library.requests import Check, Drain, Simulated

if TYPE_CHECKING:
    pass

_Text = str | None
_Texts = list[str] | None
# Characters that need no escaping in links: no white space, quotes, or characters special to Markdown or HTML.
_WEB_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/@%+,;=-]+", re.ASCII)


def _option(rule: RuleId) -> Any:
    """Build the option of a rule."""
    row = rule.row
    if row.takes is OptionType.PODS:
        return Annotated[_Texts, Option((f"--{rule}",), row.option, row.takes.value, GATE, is_everyday=row.is_everyday)]
    words = f"{row.option}  [{row.default_text}]"
    if row.takes is OptionType.SWITCH:
        return Annotated[
            bool | None, Option((f"--{rule}/--no-{rule}",), words, panel=GATE, is_everyday=row.is_everyday)
        ]
    return Annotated[_Text, Option((f"--{rule}",), words, row.takes.value, GATE, is_everyday=row.is_everyday)]


_PARAMETERS = {rule: rule.replace("-", "_") for rule in RuleId if rule.row.takes is not OptionType.NOTHING}
_FILES: dict[str, Any] = {
    "config": Annotated[_Text, CONFIG],
    "config_from": Annotated[
        _Text,
        Option(
            ("--config-from",),
            "Read the rules file and the baseline from a commit, such as HEAD^1, or from a directory (./DIR).",
            "REF|DIR",
            GATE,
        ),
    ],
}
_OTHERS: dict[str, Any] = {
    "severity": Annotated[
        _Texts,
        Option(
            ("--severity",),
            "Set a rule's severity: error fails the check, warn only reports, off disables the rule. Repeatable.",
            "RULE=error|warn|off",
            GATE,
        ),
    ],
    "report_only": Annotated[
        bool | None,
        Option(("--report-only",), "Report violations as warnings and exit 0.", panel=GATE, is_everyday=True),
    ],
    "waive": Annotated[
        _Texts,
        Option(
            ("--waive",),
            "Waive a rule, or its findings about a subject, such as max-pending='Deployment dev/*'. Repeatable.",
            "RULE[=SUBJECT]",
            GATE,
            is_everyday=True,
        ),
    ],
    "no_annotation_waivers": Annotated[
        bool | None, Option(("--no-annotation-waivers",), "Ignore waiver annotations in manifests.", panel=GATE)
    ],
    "baseline": Annotated[
        _Text,
        Option(
            ("--baseline",), "Accept the findings in FILE, written by --write-baseline.", "FILE", GATE, is_everyday=True
        ),
    ],
    "write_baseline": Annotated[
        _Text,
        Option(
            ("--write-baseline",), "Write the current failures to FILE, to accept them in later runs.", "FILE", GATE
        ),
    ],
    "expires": Annotated[
        _Text,
        Option(
            ("--expires",),
            "Last day on which the baseline from --write-baseline is valid, such as 2026-12-31.",
            "DATE",
            GATE,
        ),
    ],
}


def gate_flags(values: Mapping[str, Any]) -> GateFlags:
    """Build the flags of a gate from the options that were given (not ``None``)."""
    given = {name: value for name, value in values.items() if value is not None}
    return GateFlags(rules={rule: given.pop(name) for rule, name in _PARAMETERS.items() if name in given}, **given)


def _group(command: str) -> Group:
    rules = {name: _option(rule) for rule, name in _PARAMETERS.items() if command in rule.row.commands}
    return Group({**_FILES, **rules, **_OTHERS}, gate_flags)


_STREAM_NAME = Option(
    ("--stream-name",), "File name in SARIF and GitLab reports for a stream without # Source: comments.", "FILE", OUTPUT
)


class GatedRequest(Simulated, WhatIfRequest):
    """A simulation of the cluster whose result is checked against the rules of a gate."""

    # So that a pipeline's log has the full report.
    reports_to_log = True

    stream_name: Annotated[str, _STREAM_NAME] = "kpreempt-input.yaml"
    docs_url: Annotated[
        str,
        Option(
            ("--docs-url",),
            "Base URL of kpreempt's docs; findings link to it.",
            "URL",
            OUTPUT,
        ),
    ] = ""

    def check_contradictions(self) -> None:
        """Raise ``UsageError`` if these options are invalid or contradict each other."""
        if self.worst_case and (self.runs or 1) > 1:
            raise UsageError(
                "--worst-case and --runs cannot be used together: one tries all choices, the other samples them"
            )
        if self.docs_url and not _WEB_ADDRESS.fullmatch(self.docs_url):
            raise UsageError("--docs-url is not a valid http or https URL", hint="https://wiki.example/kpreempt/docs")


class CheckRequest(Check, GatedRequest, without=["all_namespaces", "selector", "strict", "without", "additions"]):
    """Simulate a rollout and exit 1 if it breaks a rule.

    Compares the manifests with the cluster to find what is new, changed, scaled or deleted. Then simulates the
    controllers and the scheduler, including victims and their replacements, until nothing more happens. Finally,
    checks the rules set by options or kpreempt.toml. Anything that cannot be evaluated fails the check, unless it is
    waived. On a terminal, the output fits on one screen; -v prints the full report. Output to a file or pipe is always
    the full report.

    Exit codes: 0 no rule is violated, 1 a rule is violated, 2 usage error, 3 input cannot be read.
    """

    answer = "Check"
    files: Annotated[
        list[str],
        manifest_options(
            help="Manifests to apply: a file, directory or URL, or - for the output of Helm or Kustomize. Repeatable.",
            metavar="PATH",
            panel=THE_CHANGE,
        ),
    ] = []
    base: Annotated[
        list[str],
        Option(
            ("--base",),
            "Previous manifests; problems that they also cause are not counted. Repeatable.",
            "PATH",
            THE_CHANGE,
            is_everyday=True,
        ),
    ] = []
    algorithm: Annotated[_Text, WITH_VOLCANO] = None
    gate: Annotated[GateFlags, _group("check")]
    compare_with: Annotated[
        _Text,
        Option(
            ("--compare-with",),
            "Compare with a previous run's -o json output and report what is new, worse or fixed.",
            "FILE",
            is_everyday=True,
        ),
    ] = None


class DrainRequest(Drain, GatedRequest, without=["namespace", "all_namespaces", "strict"]):
    """Simulate kubectl drain and show what blocks it.

    Shows whether the nodes drain, what blocks them, and where their pods land. The nodes are cordoned, then drained one
    after another. Evictions respect PodDisruptionBudgets as in the API server, and rejected evictions are retried every
    5 seconds. Controllers create replacement pods, which land, preempt or stay pending. The simulation ends when the
    nodes are empty or nothing more can happen. If the drain does not finish, kpreempt suggests changes with which it
    does, each verified by a simulation. Rules work as in check: options or kpreempt.toml set them. The default output
    fits on one screen; -v prints everything.

    Exit codes: 0 no rule is violated, 1 a rule is violated (drain-incomplete if a node does not drain), 2 usage error,
    3 input cannot be read.
    """

    answer = "Drain"
    stream_name: Annotated[
        str, _STREAM_NAME._replace(help="File name in SARIF and GitLab reports, which require one.")
    ] = "kpreempt-input.yaml"
    gate: Annotated[GateFlags, _group("drain")]
