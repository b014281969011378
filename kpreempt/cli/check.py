"""``kpreempt check``: whether a change may go to a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from kpreempt.cli.gate_options import Gate
from kpreempt.cli.options import After, AnswerRequest, AnyAlgorithm, manifest_options

if TYPE_CHECKING:
    from kpreempt.report.options import RenderOptions


class CheckRequest(AnswerRequest, without=["all_namespaces", "selector", "strict", "at"]):
    """What the options of ``kpreempt check`` ask for."""

    files: Annotated[
        list[str],
        manifest_options(
            "PATH",
            "Manifests that are to be applied: file, directory, URL, or - for what Helm or Kustomize writes. "
            "Repeatable.",
        ),
    ] = []
    deletions: Annotated[
        list[str],
        Option("--delete", metavar="KIND/[NS/]NAME", help="What is to be deleted as well. Repeatable."),
    ] = []
    namespace: Annotated[
        str | None, Option("-n", "--namespace", metavar="NS", help="Where objects go that do not say it.")
    ] = None
    base: Annotated[
        list[str],
        Option(metavar="PATH", help="The manifests as they were: what they bring about anyway does not count."),
    ] = []
    prune: Annotated[bool, Option("--prune", help="Objects that only the base has are deleted.")] = False
    autoscaled: Annotated[
        str,
        Option(
            metavar="SIZE",
            help="What a HorizontalPodAutoscaler scales is simulated at its current size, or at its max.",
        ),
    ] = "current"
    job_duration: Annotated[
        str | None,
        Option(
            "--job-duration",
            metavar="TIME",
            help="How long each pod of a Job without activeDeadlineSeconds runs until it ends, or never.  [10m]",
        ),
    ] = None
    create_namespace: Annotated[
        bool,
        Option(
            "--create-namespace",
            help="Make namespaces first that the change needs and the cluster has not, as helm install does.",
        ),
    ] = False
    algorithm: AnyAlgorithm = None
    seed: Annotated[int, After("extensions"), Option(metavar="NUMBER", help="What chance starts from.")] = 0
    runs: Annotated[
        int | None,
        Option(
            metavar="N",
            min=1,
            help="Run it N times with other draws; the worst counts. By default once where nothing is drawn, every "
            "choice where these are few, else up to 20 times.",
        ),
    ] = None
    worst_case: Annotated[
        bool, Option("--worst-case", help="Simulate every choice that chance leaves; the worst counts.")
    ] = False
    max_plays: Annotated[
        int, Option(metavar="N", min=1, help="With --worst-case: at most so many; more leave it uncertain.")
    ] = 100
    stream_name: Annotated[
        str,
        Option(
            "--stream-name",
            metavar="FILE",
            help="The file that SARIF and GitLab name for a stream without # Source: comments.",
        ),
    ] = "kpreempt-input.yaml"
    docs_url: Annotated[
        str,
        Option(
            "--docs-url",
            metavar="URL",
            help="Where kpreempt's docs are to be read: findings link to the pages of their rules there.",
        ),
    ] = ""
    gate: Gate
    compare_with: Annotated[
        str | None,
        Option(
            "--compare-with",
            metavar="FILE",
            help="What a former run wrote with -o json: tell what is new, worse and better since then.",
        ),
    ] = None
    outputs: Annotated[
        list[str],
        Option(
            "-o",
            "--output",
            metavar="FORMAT[=FILE]",
            help="text (default), json, yaml, jsonl, name, markdown, html, junit, sarif, github or gitlab, into FILE "
            "if given. Repeatable. Or, as kubectl has them, jsonpath=TEMPLATE and custom-columns=HEADER:PATH,...",
        ),
    ] = []

    def lengthened_for_log(self, options: RenderOptions) -> RenderOptions:
        """The report: a pipeline's log keeps what the gate found."""
        import msgspec

        from kpreempt.report.options import Extent

        return msgspec.structs.replace(self.lengthened(options), extent=Extent.REPORT)


def check(request: CheckRequest) -> int:
    """Simulate a rollout against the cluster, and fail where it would hurt.

    The manifests are compared with the cluster: what is new, changed, scaled or deleted. Controllers and scheduler are
    simulated until nothing more happens, victims and their replacements included. Then the rules are checked, from
    options or kpreempt.toml; what could not be evaluated fails, too, unless it is waived. A terminal shows one screen,
    with every finding or how many more there are; -v, a file and a pipe get the report.

    Exit codes: 0 all rules hold, 1 one does not, 2 wrong usage, 3 input unreadable.
    """
    from kpreempt.cli.check_run import run_check

    return run_check(request)
