"""What ``check`` and ``drain`` are asked: a simulation, the rules that are put to it, and their files."""

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

from kpreempt.cli.requests import (
    CHANGING_NODES,
    CONFIG,
    WITH,
    WITH_VOLCANO,
    WITHOUT,
    AnswerRequest,
    NodeChanges,
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
# What stands in links as it is: no white space, quotes, or signs that mean something in Markdown or in HTML.
_WEB_ADDRESS = re.compile(r"https?://[A-Za-z0-9._~:/@%+,;=-]+", re.ASCII)


def _option(rule: RuleId) -> Any:
    """The option of a rule."""
    row = rule.row
    if row.takes is OptionType.PODS:
        return Annotated[_Texts, Option((f"--{rule}",), row.option, row.takes.value, GATE)]
    words = f"{row.option}  [{row.default_text}]"
    if row.takes is OptionType.SWITCH:
        return Annotated[bool | None, Option((f"--{rule}/--no-{rule}",), words, panel=GATE)]
    return Annotated[_Text, Option((f"--{rule}",), words, row.takes.value, GATE)]


_PARAMETERS = {rule: rule.replace("-", "_") for rule in RuleId if rule.row.takes is not OptionType.NOTHING}
_FILES: dict[str, Any] = {
    "config": Annotated[_Text, CONFIG],
    "config_from": Annotated[
        _Text,
        Option(
            ("--config-from",),
            "Read the rules' file and the baseline from a commit, such as HEAD^1, or a folder (./DIR), and not as they "
            "are here.",
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
            "What a rule counts for: an error shuts the gate, a warning does not. Repeatable.",
            "RULE=error|warn|off",
            GATE,
        ),
    ],
    "report_only": Annotated[
        bool | None, Option(("--report-only",), "Tell what breaks the rules, as warnings, and exit 0.", panel=GATE)
    ],
    "waive": Annotated[
        _Texts,
        Option(
            ("--waive",),
            "Let a rule pass, or what it says of a subject: max-pending='Deployment dev/*'. Repeatable.",
            "RULE[=SUBJECT]",
            GATE,
        ),
    ],
    "no_annotation_waivers": Annotated[
        bool | None, Option(("--no-annotation-waivers",), "No annotation of the manifests waives a rule.", panel=GATE)
    ],
    "baseline": Annotated[
        _Text, Option(("--baseline",), "What is accepted, as --write-baseline wrote it.", "FILE", GATE)
    ],
    "write_baseline": Annotated[
        _Text, Option(("--write-baseline",), "Write what fails now to FILE, to be accepted until then.", "FILE", GATE)
    ],
    "expires": Annotated[
        _Text, Option(("--expires",), "The last day on which the new baseline counts: 2026-12-31.", "DATE", GATE)
    ],
}


def gate_flags(values: Mapping[str, Any]) -> GateFlags:
    """The flags that the options were given as; ``None`` where one was not."""
    given = {name: value for name, value in values.items() if value is not None}
    return GateFlags(rules={rule: given.pop(name) for rule, name in _PARAMETERS.items() if name in given}, **given)


def _group(command: str) -> Group:
    rules = {name: _option(rule) for rule, name in _PARAMETERS.items() if command in rule.row.commands}
    return Group({**_FILES, **rules, **_OTHERS}, gate_flags)


_STREAM_NAME = Option(
    ("--stream-name",), "The file that SARIF and GitLab name for a stream without # Source: comments.", "FILE", OUTPUT
)


class GatedRequest(Simulated, AnswerRequest):
    """A simulation of what happens to the cluster, to which the rules of a gate are put."""

    # A pipeline's log keeps what the gate found.
    reports_to_log = True

    stream_name: Annotated[str, _STREAM_NAME] = "kpreempt-input.yaml"
    docs_url: Annotated[
        str,
        Option(
            ("--docs-url",),
            "Where kpreempt's docs are to be read: findings link to the pages of their rules there.",
            "URL",
            OUTPUT,
        ),
    ] = ""

    def check_contradictions(self) -> None:
        """Raise ``UsageError`` where these options contradict each other or are none."""
        if self.worst_case and (self.runs or 1) > 1:
            raise UsageError("--worst-case looks at all choices, and --runs draws some of them: one of both")
        if self.docs_url and not _WEB_ADDRESS.fullmatch(self.docs_url):
            raise UsageError("--docs-url is no address of a web page", hint="https://wiki.example/kpreempt/docs")


class CheckRequest(Check, GatedRequest, without=["all_namespaces", "selector", "strict"]):
    """Simulate a rollout against the cluster, and fail where it would hurt.

    The manifests are compared with the cluster: what is new, changed, scaled or deleted. Controllers and scheduler are
    simulated until nothing more happens, victims and their replacements included. Then the rules are checked, from
    options or kpreempt.toml; what could not be evaluated fails, too, unless it is waived. A terminal shows one screen,
    with every finding or how many more there are; -v, a file and a pipe get the report.

    Exit codes: 0 all rules hold, 1 one does not, 2 wrong usage, 3 input unreadable.
    """

    answer = "Check"
    files: Annotated[
        list[str],
        manifest_options(
            help="Manifests that are to be applied: file, directory, URL, or - for what Helm or Kustomize writes. "
            "Repeatable.",
            metavar="PATH",
            panel=THE_CHANGE,
        ),
    ] = []
    base: Annotated[
        list[str],
        Option(
            ("--base",), "The manifests as they were: what they bring about anyway does not count.", "PATH", THE_CHANGE
        ),
    ] = []
    algorithm: Annotated[_Text, WITH_VOLCANO] = None
    gate: Annotated[GateFlags, _group("check")]
    compare_with: Annotated[
        _Text,
        Option(
            ("--compare-with",),
            "What a former run wrote with -o json: tell what is new, worse and better since then.",
            "FILE",
        ),
    ] = None


class DrainRequest(Drain, GatedRequest, without=["namespace", "all_namespaces", "strict"]):
    """Simulate kubectl drain: whether the nodes get empty, what blocks them, and where their pods go.

    The nodes are cordoned, then drained one after the other: evictions ask budgets as the API server does, controllers
    make new pods, these land, preempt or wait, and refused evictions are tried again every 5 seconds, until the nodes
    are empty or nothing more can happen. Each blocked eviction comes with the smallest change that was found to help.
    The same rules as of check guard a pipeline, from options or kpreempt.toml. One screen; -v has everything.

    Exit codes: 0 all rules hold, 1 one does not (drain-incomplete where a node stays), 2 wrong usage, 3 input
    unreadable.
    """

    answer = "Drain"
    without: Annotated[list[str], WITHOUT] = []
    additions: Annotated[list[str], WITH] = []
    node_changes: Annotated[NodeChanges, CHANGING_NODES]
    stream_name: Annotated[str, _STREAM_NAME._replace(help="The file that SARIF and GitLab name, which want one.")] = (
        "kpreempt-input.yaml"
    )
    gate: Annotated[GateFlags, _group("drain")]
