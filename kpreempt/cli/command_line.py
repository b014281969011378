"""The command line as users write it: options before the command, ``help COMMAND``, and the help itself.

Typer's own help has all options in one list and summaries that are cut off. Here options stand under headings, by
``HEADINGS``, with the examples of ``EXAMPLES`` at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kpreempt.errors import UsageError, nearest

if TYPE_CHECKING:
    from typer import Context

# The options of the program itself.
OF_PROGRAM = ("--help", "-h", "--version")

# In the order of the help. Options that no heading names stand under the last but two, so that none is lost.
_OTHER = "Other options"
_VOLCANO = "Volcano"
HEADINGS: Mapping[str, tuple[str, ...]] = {
    "The pod": (
        *("--filename", "--kustomize", "--select", "--namespace", "--all-namespaces", "--selector"),
        *(
            "--priorities",
            "--ask",
            "--cpu",
            "--memory",
            "--resource",
            "--batch",
            "--replicas",
            "--workloads",
            "--delete",
            "--base",
            "--prune",
        ),
    ),
    "The cluster": (
        "--snapshot",
        "--snapshots",
        "--contexts",
        "--at",
        "--before",
        "--events",
        "--skip-bad-objects",
        "--assume-none",
        "--follow-links",
        "--max-unpacked",
        "--now",
    ),
    "What if": (
        *("--priority", "--priority-class", "--preemption-policy", "--set", "--without", "--with"),
        *("--cordon", "--uncordon", "--add-node", "--add-pool", "--remove-node", "--budget"),
    ),
    "The drain": (
        *("--pool", "--force", "--ignore-daemonsets", "--delete-emptydir-data", "--disable-eviction"),
        *("--grace-period", "--pod-selector", "--skip-wait-for-delete-timeout", "--timeout", "--chunk-size"),
        *("--one-by-one", "--max-unavailable", "--surge", "--best-order", "--kubelet-version", "--remove"),
    ),
    "Gate and exit code": (
        *("--config", "--config-from", "--max-pdb-violations", "--max-victims"),
        *("--max-victims-per-workload", "--forbid-victims"),
        *("--require-schedulable", "--max-cascade-depth", "--max-pending", "--max-stranded", "--lost-pods"),
        *("--max-deletions", "--namespace-deletion", "--volume-deletion", "--scaled-to-zero", "--service-outage"),
        *("--quota-refusals", "--forbid-loops", "--min-ready"),
        *(
            "--apply-refused",
            "--removed-api",
            "--blocked-drains",
            "--pdb-selector",
            "--pdb-blocks-at-hpa-minimum",
            "--pdb-weakened",
            "--priority-lowered",
            "--priority-class-in-use",
            "--default-priority-changed",
            "--quota-loosened",
            "--namespace-relabeled",
            "--owner-removed",
            "--drain-blocked",
            "--autoscaled-replicas",
            "--duplicate-objects",
            "--autoscaled-maximum",
            "--rollout-stuck",
            "--volume-attached-elsewhere",
            "--bypasses-scheduler",
            "--adopted-pods",
            "--created-nodes",
        ),
        *("--max-snapshot-age",),
        *("--severity", "--report-only", "--waive", "--no-annotation-waivers", "--baseline"),
        *(
            "--write-baseline",
            "--expires",
            "--fail-on",
            "--fail-on-difference",
            "--exit-code",
            "--strict",
            "--fail-below",
        ),
    ),
    "Output": (
        *("--output", "--verbose", "--brief", "--color", "--node", "--capacity", "--aftermath", "--limit", "--watch"),
        *(
            "--interval",
            "--to",
            "--resume",
            "--info",
            "--from",
            "--for",
            "--keep",
            "--max-size",
            "--base-every",
            "--redact",
            "--redact-map",
            "--stream-name",
            "--docs-url",
            "--compare-with",
            "--differences",
        ),
        *("--quiet", "--jobs", "--profile-json"),
    ),
    "Workers": ("--scheduler", "--workers", "--worker-memory"),
    "Scheduler": (
        *(
            "--algorithm",
            "--algorithms",
            "--upgrade-to",
            "--scheduler-config",
            "--policy-config",
            "--feature-gates",
            "--plugin",
        ),
        *("--call-extenders", "--worst-case", "--max-plays", "--autoscaled", "--job-duration", "--create-namespace"),
        "--applied-by",
    ),
    _OTHER: (),
    "Connection": (
        *("--kubeconfig", "--context", "--cluster", "--user", "--server", "--token", "--certificate-authority"),
        *("--insecure-skip-tls-verify", "--tls-server-name", "--as", "--as-group", "--as-uid", "--request-timeout"),
        "--no-cache",
    ),
    _VOLCANO: ("--actions", "--runs", "--seed"),
}
_HEADING_OF = {option: heading for heading, options in HEADINGS.items() for option in options}

_DEMO = "--snapshot fixtures/demo/cluster.yaml"
_ON_CALL = "--snapshot fixtures/on-call/cluster.yaml"
_OUTAGE = "--snapshot fixtures/check/outage/cluster.yaml"
_DRAIN = "--snapshot fixtures/drain/cluster.yaml"
# Two for each command, on the files that are shipped; ``tests/unit/cli/test_help.py`` runs them.
EXAMPLES: Mapping[str, tuple[str, str]] = {
    "explain": (
        f"explain -f fixtures/demo/api.yaml {_DEMO}",
        "explain deploy/web -n shop --capacity --snapshot fixtures/workloads/cluster.yaml",
    ),
    "pending": (f"pending {_ON_CALL}", f"pending -n shop {_ON_CALL} -o custom-columns=POD:.pod,OUTCOME:.outcome"),
    "queue": (f"queue {_ON_CALL}", "queue --algorithm kube-1.13 --events fixtures/queue/events.yaml"),
    "who-preempted": (
        f"who-preempted encode-1 -n batch {_ON_CALL}",
        f"who-preempted encode-1 -n batch {_ON_CALL} --before fixtures/on-call/before.yaml",
    ),
    "at-risk": (f"at-risk -n batch {_ON_CALL}", f"at-risk -A --limit 3 {_ON_CALL}"),
    "check": (
        f"check -f fixtures/check/outage/rollout.yaml {_OUTAGE}",
        f"check -f fixtures/check/outage/rollout.yaml {_OUTAGE} --max-victims 2 -o markdown",
    ),
    "drain": (
        f"drain n1 --ignore-daemonsets {_DRAIN}",
        f"drain -l pool=general --ignore-daemonsets {_DRAIN} -o markdown",
    ),
    "rules": ("rules", "rules lost-pods"),
    "budgets": (
        "budgets --snapshot fixtures/budgets/cluster.yaml",
        "budgets -n batch --fail-on error --snapshot fixtures/budgets/cluster.yaml",
    ),
    "volcano": (
        "volcano --snapshot fixtures/volcano/vetoed-by-gang.yaml"
        " --scheduler-config fixtures/volcano/vetoed-by-gang.conf",
        "volcano --snapshot fixtures/volcano/either-node.yaml"
        " --scheduler-config fixtures/volcano/either-node.conf --runs 40",
    ),
    "batch": (
        "batch fixtures/batch/scenarios.jsonl",
        f"batch fixtures/batch/scenarios.jsonl {_DEMO} --jobs 1",
    ),
    "mcp": (
        "mcp --snapshot fixtures/demo/cluster.yaml",
        "mcp --snapshot fixtures/demo/cluster.yaml --algorithm kube-1.29",
    ),
    "sweep": (
        "sweep fixtures/sweep/sweep.toml --to sweep",
        "sweep --snapshots 'fixtures/*/cluster.yaml' --ask pending --ask budgets --to sweep",
    ),
    "algorithms": ("algorithms", "algorithms -o name"),
    "plugins": ("plugins", "plugins -o name"),
    "compare": (
        "compare --algorithms kube-1.18,kube-1.36 -f fixtures/compare/api.yaml"
        " --snapshot fixtures/compare/cluster.yaml",
        f"compare --algorithms kube-1.13,kube-1.36 {_ON_CALL}",
    ),
    "completion": ("completion bash", "completion fish"),
    "snapshot": (
        f"snapshot {_DEMO} --to cluster.json.gz",
        f"snapshot {_DEMO} --redact --to -",
    ),
    "record": (
        "record --info fixtures/recording",
        "explain pod/api -n shop --snapshot fixtures/recording --at pod/shop/api",
    ),
    "history": (
        "history api -n shop --snapshot fixtures/recording",
        "history node/node-a --snapshot fixtures/recording -o jsonl",
    ),
    "verify": ("verify fixtures/recording", "verify fixtures/recording -o openmetrics --fail-below 99.5"),
    "help": ("help explain", "help check"),
    "version": ("version", "version -o json"),
}


class Program(TyperGroup):
    """The program, whose commands' options may stand before the command: ``kpreempt -n shop pending``."""

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]
        """All options, of which texts are taken as they are."""
        return _with_coercion(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Raises ``UsageError`` for options that no command has."""
        return super().parse_args(ctx, self._with_help(self._with_command_first(args)))

    def format_commands(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """Each with its whole summary."""
        rows = [(name, summary(each)) for name, each in self.commands.items() if not each.hidden]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def _with_help(self, args: list[str]) -> list[str]:
        """``help COMMAND`` as ``COMMAND --help``."""
        if args[:1] != ["help"] or args[1:] in (["--help"], ["-h"]):
            return args
        return [*[each for each in args[1:] if not each.startswith("-")][:1], "--help"]

    def _with_command_first(self, args: list[str]) -> list[str]:
        """The same with the options that stand before the command after it."""
        takes_value = dict(_takes_value(self))
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] not in ("-", "--"):
            word = args[index]
            if word in OF_PROGRAM:
                return [word]
            index += 1 + _needs_next(word, takes_value)
        if index == 0:
            return args
        if index >= len(args):
            raise UsageError(f"{args[0]}: which command is missing", hint="kpreempt --help")
        return [args[index], *args[:index], *args[index + 1 :]]


class AnswerCommand(TyperCommand):
    """A command whose help has its options under headings, and examples."""

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]
        """All options, of which texts are taken as they are."""
        return _with_coercion(super().get_params(ctx))

    def format_options(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """Arguments, then options by their headings, and how the command is used."""
        arguments = [each.get_help_record(ctx) for each in self.params if isinstance(each, TyperArgument)]
        if shown := [each for each in arguments if each]:
            with formatter.section("Arguments"):
                formatter.write_dl(shown)
        options = [each for each in self.get_params(ctx) if isinstance(each, TyperOption)]
        for heading in HEADINGS:
            rows = [row for each in options if _heading(each) == heading and (row := each.get_help_record(ctx))]
            if rows:
                with formatter.section(heading):
                    formatter.write_dl(rows)
        program = ctx.find_root().info_name
        with formatter.section("Examples"):
            for example in EXAMPLES.get(self.name or "", ()):
                # Not wrapped: it is there to be pasted.
                formatter.write(f"  {program} {example}\n")


def _with_coercion(options: list[Any]) -> list[Any]:
    """The options, each with its ``_Coercion``."""
    for each in options:
        if "get_runtime_param" not in vars(each):
            each.get_runtime_param = partial(_Coercion, each.get_runtime_param)
    return options


class _Coercion:
    """What is made of the words of an option: a text is one already.

    ``otherwise`` gives Typer's own way, for numbers. It loads pydantic, which takes as long as all the rest of a start.
    """

    def __init__(self, otherwise: Callable[[], Any]) -> None:
        self._otherwise = otherwise

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Context) -> Any:
        """The value that the command gets. Raises what Typer raises for words that are no number."""
        kind, is_words = param.type_descriptor.annotation, isinstance(value, str | list | tuple)
        if is_words and kind not in (str, list[str]):
            return self._otherwise().coerce(value, param=param, ctx=ctx)
        if kind == list[str]:
            return list(value or ())
        return value


def summary(command: Any) -> str:
    """The first sentence of a command's help."""
    text = " ".join((command.help or "").split("\n\n", maxsplit=1)[0].split())
    return text if text.endswith(".") and ". " not in text else f"{text.partition('. ')[0].rstrip('.')}."


def _heading(option: TyperOption) -> str:
    return _HEADING_OF.get(max(option.opts, key=len), _OTHER)


def _takes_value(program: TyperGroup) -> Iterator[tuple[str, bool]]:
    """Each name of each option of any command, and whether a value follows it."""
    for command in program.commands.values():
        for option in command.params:
            if isinstance(option, TyperOption):
                yield from ((name, not (option.is_flag or option.count)) for name in option.opts)


def _needs_next(word: str, takes_value: Mapping[str, bool]) -> bool:
    """Whether the value of the word's option is the next word. Raises ``UsageError`` for one that no command has."""
    name, equals, _ = word.partition("=")
    if name in takes_value:
        return takes_value[name] and not equals
    if not word.startswith("--") and f"-{word[1]}" in takes_value:
        # Letters in one word, the last perhaps with its value.
        for index, letter in enumerate(word[1:], start=2):
            if takes_value.get(f"-{letter}", True):
                return index == len(word)
        return False
    hint = nearest(name, [*takes_value, *OF_PROGRAM]) if len(name) > 2 else ""
    raise UsageError(f"no such option: {name}", hint=hint)
