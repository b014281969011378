"""What TAB offers: for words as kubectl hands them over, and through the shells' own scripts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from kpreempt.cli.app import make_app
from kpreempt.cli.completion.process import text_of, words_of_line
from kpreempt.cli.completion.values import DEFAULT, NO_FILES, NO_SPACE, Candidate, Completion, CursorPosition, complete
from kpreempt.cli.requests import COMMANDS

ROOT = Path(__file__).parents[3]
CLUSTER = {
    "pods": ["web-1", "web-2", "api"],
    "nodes": ["node-a", "node-b"],
    "namespaces": ["shop", "batch"],
    "priorityclasses": ["high", "low"],
    "deployments": ["web", "db"],
    "poddisruptionbudgets": ["web"],
    "resourceclaims": ["gpu"],
}


class NamesOfTest:
    """A cluster that notes in which namespace pods were looked for."""

    def __init__(self) -> None:
        self.namespace: Sequence[str] = ()

    def of_kind(self, plural: str, place: CursorPosition) -> Sequence[Candidate]:
        self.namespace = place.options.get("--namespace", ())
        return [Candidate(name) for name in CLUSTER.get(plural, [])]

    def in_kubeconfig(self, section: str, place: CursorPosition) -> Sequence[Candidate]:
        return [Candidate(f"one-of-{section}")]


def offered(*words: str) -> tuple[list[str], int]:
    found = complete(get_command(make_app()), words, NamesOfTest())  # type: ignore[arg-type]
    return [each.value for each in found.candidates], found.directive


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        pytest.param(["ex"], ["explain"], id="a command"),
        pytest.param(["explain", "--pri"], ["--priority", "--priority-class"], id="an option"),
        pytest.param(["explain", "-v", "--verb"], [], id="a flag that is already there, under its other name"),
        pytest.param(["explain", "--cordon", "a", "--cor"], ["--cordon"], id="an option that can be repeated"),
        pytest.param(["explain", "w"], ["web-1", "web-2"], id="a pod"),
        pytest.param(["explain", "pod/w"], ["pod/web-1", "pod/web-2"], id="a pod with its kind"),
        pytest.param(["explain", "api", ""], [], id="nothing after the pod"),
        pytest.param(["explain", "deploy/"], ["deploy/web", "deploy/db"], id="a workload"),
        pytest.param(["explain", "deployments/w"], ["deployments/web"], id="a workload by its plural"),
        pytest.param(["explain", "deploy", "w"], ["web"], id="a workload in two words"),
        pytest.param(["explain", "svc/"], ["svc/web-1", "svc/web-2", "svc/api"], id="pods of a namespace"),
        pytest.param(["explain", "shop/w"], ["shop/web-1", "shop/web-2"], id="a pod after its namespace"),
        pytest.param(["who-evicted", "w"], ["web-1", "web-2"], id="a pod that was evicted"),
        pytest.param(["compare", "w"], ["web-1", "web-2"], id="a pod to compare"),
        pytest.param(["drain", "n"], ["node-a", "node-b"], id="a node to drain"),
        pytest.param(["drain", "node-a", "n"], ["node-b"], id="another node to drain"),
        pytest.param(["drain", "--cordon", "node-a", "n"], ["node-a", "node-b"], id="a node after an option"),
        pytest.param(["history", "node/"], ["node/node-a", "node/node-b"], id="the history of a node"),
        pytest.param(["history", "pdb/w"], ["pdb/web"], id="the history of a budget"),
        pytest.param(["history", "deploy/"], [], id="no history of a workload"),
        pytest.param(["drain", "--without", "node/"], ["node/node-a", "node/node-b"], id="a node to remove"),
        pytest.param(["explain", "--without", "pdb/shop/"], ["pdb/shop/web"], id="a budget to remove"),
        pytest.param(["check", "--delete", "deploy/"], ["deploy/web", "deploy/db"], id="a workload to delete"),
        pytest.param(
            ["explain", "--taint-node", "node-a=x=y:"],
            ["node-a=x=y:NoSchedule", "node-a=x=y:PreferNoSchedule", "node-a=x=y:NoExecute"],
            id="the effect of a taint",
        ),
        pytest.param(
            ["explain", "--taint-node", "node-a=x:NoE"],
            ["node-a=x:NoExecute", "node-a=x:NoExecute-"],
            id="the effect of a taint, which may be removed",
        ),
        pytest.param(["explain", "--taint-node", "node-a=x"], [], id="nothing for the key of a taint"),
        pytest.param(
            ["explain", "--set-node", "node-a:spec"],
            ["node-a:spec.unschedulable=true", "node-a:spec.unschedulable=false"],
            id="a field of a node",
        ),
        pytest.param(["explain", "-v", "a"], ["api"], id="a pod after a flag"),
        pytest.param(["explain", "--", "a"], ["api"], id="a pod after two dashes"),
        pytest.param(["explain", "-n", "s"], ["shop"], id="a namespace"),
        pytest.param(["explain", "--namespace=s"], ["shop"], id="the value in the word of its option"),
        pytest.param(["explain", "--node", ""], ["node-a", "node-b"], id="a node"),
        pytest.param(["explain", "--cordon", "node-b"], ["node-b"], id="a node to cordon"),
        pytest.param(["explain", "--priority-class", ""], ["high", "low"], id="a priority class"),
        pytest.param(["explain", "-o", "j"], ["json", "jsonl", "jsonpath="], id="a format"),
        pytest.param(["batch", "-o", ""], ["jsonl"], id="the only format"),
        pytest.param(["check", "-o", "j"], ["json", "jsonl", "junit", "jsonpath="], id="a format of check"),
        pytest.param(["check", "--waive", "max-p"], ["max-pdb-violations", "max-pending"], id="a rule"),
        pytest.param(["rules", "max-p"], ["max-pdb-violations", "max-pending"], id="a rule to be explained"),
        pytest.param(
            ["check", "--severity", "lost-pods="],
            ["lost-pods=error", "lost-pods=warn", "lost-pods=off"],
            id="a severity",
        ),
        pytest.param(
            ["check", "--severity", "outcome-uncertain="],
            ["outcome-uncertain=error", "outcome-uncertain=warn"],
            id="a severity of a rule that is never off",
        ),
        pytest.param(["explain", "--color", "a"], ["auto", "always"], id="when to colour"),
        pytest.param(["explain", "--preemption-policy", "N"], ["Never"], id="a preemption policy"),
        pytest.param(["explain", "--cpu", ""], [], id="nothing for an amount"),
        pytest.param(["compare", "--upgrade-to", "1.36"], ["1.36"], id="a version to upgrade to"),
        pytest.param(["completion", "f"], ["fish"], id="a shell"),
        pytest.param(["nonsense", ""], [], id="nothing after an unknown command"),
        pytest.param(["explain", "--nonsense", "a"], ["api"], id="a pod after an unknown option"),
        pytest.param(
            ["explain", "--feature-gates", "PodLevelResources=true,SidecarContainers="],
            ["PodLevelResources=true,SidecarContainers=true", "PodLevelResources=true,SidecarContainers=false"],
            id="a feature gate's value after another",
        ),
    ],
)
def test_candidates_are_what_the_word_can_become(words: list[str], candidates: list[str]) -> None:
    assert offered(*words) == (candidates, NO_FILES)


@pytest.mark.parametrize(
    ("words", "candidates"),
    [
        pytest.param(["explain", "d"], ["deploy/", "ds/"], id="a kind, with pods that start like it"),
        pytest.param(["explain", "p"], ["pod/"], id="the kind of pods"),
        pytest.param(["history", "n"], ["node/"], id="a kind with a history"),
        pytest.param(["explain", "--without", ""], ["pod/", "node/", "pdb/", "resourceclaim/"], id="a kind to remove"),
        pytest.param(["explain", "--without", "pdb/"], ["pdb/web", "pdb/shop/", "pdb/batch/"], id="a budget to remove"),
        pytest.param(["explain", "--budget", "s"], ["shop/"], id="the namespace of a budget"),
        pytest.param(["explain", "--budget", "shop/"], ["shop/web="], id="a budget and its number"),
        pytest.param(["pending", "--label-node", "node-a"], ["node-a="], id="a node and its label"),
        pytest.param(["pending", "--set-node", "node-a"], ["node-a:"], id="a node and its field"),
        pytest.param(
            ["pending", "--set-node", "node-a:status.allocatable.c"],
            ["node-a:status.allocatable.cpu="],
            id="a resource and its amount",
        ),
    ],
)
def test_more_follows_without_a_space(words: list[str], candidates: list[str]) -> None:
    assert offered(*words) == (candidates, NO_FILES | NO_SPACE)


def test_pods_and_kinds_are_offered_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(CLUSTER, "pods", ["db-0", "web-1"])
    assert offered("explain", "d")[0] == ["deploy/", "ds/", "db-0"]
    assert offered("explain", "db") == (["db-0"], NO_FILES)


def test_a_configuration_is_one_that_is_shipped_or_a_file() -> None:
    assert offered("pending", "--scheduler-config", "") == (["eks"], DEFAULT)


@pytest.mark.parametrize(
    ("words", "directive"),
    [
        pytest.param(["explain", "-f", ""], DEFAULT, id="a manifest is a file"),
        pytest.param(["explain", "--snapshot=clu"], DEFAULT, id="a snapshot is a file"),
        pytest.param(["batch", ""], DEFAULT, id="scenarios are a file"),
        pytest.param(["explain", "--set", ""], NO_FILES, id="the path of a field is no file"),
    ],
)
def test_files_are_left_to_the_shell(words: list[str], directive: int) -> None:
    assert offered(*words) == ([], directive)


def test_a_feature_gate_is_followed_by_its_value_without_a_space() -> None:
    gates = ["DRADeviceTaintRules=", "DRADeviceTaints="]
    assert offered("explain", "--feature-gates", "DRADeviceT") == (gates, NO_FILES | NO_SPACE)


@pytest.mark.parametrize(
    ("words", "gates"),
    [
        pytest.param(["--algorithm", "kube-1.30"], ["SchedulerQueueingHints="], id="those that the version has"),
        pytest.param(
            ["--algorithm", "kube-1.33"],
            ["SchedulerAsyncPreemption=", "SchedulerPopFromBackoffQ=", "SchedulerQueueingHints="],
            id="new ones",
        ),
        pytest.param(
            ["--algorithm=kube-1.34.1"],
            ["SchedulerAsyncAPICalls=", "SchedulerAsyncPreemption=", "SchedulerPopFromBackoffQ="],
            id="of a release, and none that is locked",
        ),
        pytest.param(
            ["--algorithm", "auto"],
            [
                "SchedulerAsyncAPICalls=",
                "SchedulerAsyncPreemption=",
                "SchedulerPopFromBackoffQ=",
                "SchedulerPreQueueingHints=",
            ],
            id="those of the newest for the cluster's own",
        ),
        pytest.param(["--algorithm", "kube-1.13"], [], id="and those of old versions"),
    ],
)
def test_gates_are_those_that_can_be_set_in_the_version(words: list[str], gates: list[str]) -> None:
    assert offered("explain", *words, "--feature-gates", "Scheduler") == (gates, NO_FILES | NO_SPACE)


def test_gates_of_old_versions_and_those_of_an_upgrade() -> None:
    assert offered("explain", "--algorithm", "kube-1.13", "--feature-gates", "PodP")[0] == ["PodPriority="]
    upgrade = ["compare", "--upgrade-to", "1.34", "--algorithm", "kube-1.33", "--feature-gates"]
    assert offered(*upgrade, "SchedulerQ")[0] == []
    assert offered(*upgrade, "SchedulerPopFromBackoffQ=true,SchedulerPop")[0] == []


@pytest.mark.parametrize("words", [["-n", "shop", ""], ["-nshop", ""], ["-vn", "shop", ""], ["--namespace=shop", ""]])
def test_pods_are_those_of_the_namespace_however_it_is_written(words: list[str]) -> None:
    names = NamesOfTest()
    complete(get_command(make_app()), ["explain", *words], names)  # type: ignore[arg-type]
    assert names.namespace == ["shop"]


def test_every_command_completes_every_option_that_it_has() -> None:
    for name, command in get_command(make_app()).commands.items():  # type: ignore[attr-defined]
        options = {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        long = {option for option in options if option.startswith("--")} | {"--help"}
        assert set(offered(name, "--")[0]) == long


def test_what_a_terminal_cannot_take_is_left_out() -> None:
    found = Completion([Candidate("a", "why"), Candidate("b\x1b[31m"), Candidate("c\nd"), Candidate("e")])
    assert text_of(found) == "a\twhy\ne\n:4\n"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("kpreempt explain we", ["kpreempt", "explain", "we"]),
        ("kpreempt explain ", ["kpreempt", "explain", ""]),
        ("kpreempt explain 'a b' c#d", ["kpreempt", "explain", "a b", "c#d"]),
        ('kpreempt explain "web', ["kpreempt", "explain", "web"]),
    ],
)
def test_a_line_is_split_as_the_shell_splits_it(line: str, words: list[str]) -> None:
    assert words_of_line(line) == words


@pytest.mark.parametrize("words", [["explain", "--pre"], [], ["--", "-", "=", ""]])
def test_completing_writes_candidates_and_nothing_else(words: list[str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "kpreempt", "__complete", *words], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines()[-1] in (":0", ":4")


def test_an_unknown_shell_is_one_message(kpreempt: object) -> None:
    assert kpreempt("completion", "tcsh") == (  # type: ignore[operator]
        2,
        "",
        "error: no completion script for 'tcsh'\nhint: bash, zsh, fish, kubectl\n",
    )


def test_the_program_that_kubectl_asks_can_be_run() -> None:
    assert os.access(ROOT / "completions" / "kubectl_complete-kpreempt", os.X_OK)


def in_shell(*command: str) -> list[str]:
    """What a shell prints that finds this environment's kpreempt on its path."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
    environment = {"PATH": path, "HOME": "/nonexistent", "KUBECONFIG": "/nonexistent", "TERM": "dumb"}
    environment["PYTHONPATH"] = str(ROOT)
    run = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT / "completions", env=environment)
    return run.stdout.splitlines()


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("kpreempt expl", ["explain"]),
        ("kpreempt explain --output=j", ["json", "jsonl", "jsonpath="]),
        ("kpreempt explain -o j", ["json", "jsonl", "jsonpath="]),
        # bash takes what stands after = for the word.
        ("kpreempt explain --feature-gates PodLevelResources=t", ["true"]),
        ("kpreempt explain -f ", []),
        ("kpreempt drain --snapshot ../fixtures/on-call/cluster.yaml node-", ["node-a", "node-b", "node-c", "node-d"]),
        ("kpreempt explain --snapshot=../fixtures/on-call/cluster.yaml d", ["deploy/", "ds/"]),
        (
            "kpreempt pending --snapshot ../fixtures/on-call/cluster.yaml --set-node node-a:sp",
            ["spec.unschedulable=true", "spec.unschedulable=false"],
        ),
        ("kpreempt pending --snapshot ../fixtures/on-call/cluster.yaml --label-node node-a", ["node-a="]),
        ("kpreempt history --snapshot ../fixtures/recording node/node-a", ["node/node-a"]),
    ],
)
def test_bash_offers_the_candidates(line: str, replies: list[str]) -> None:
    script = (
        "source ./kpreempt.bash; COMP_LINE=$1 COMP_POINT=${#1} COMP_WORDBREAKS=$' \\t\\n=:'; _kpreempt; "
        '((${#COMPREPLY[@]})) && printf "%s\\n" "${COMPREPLY[@]}"; true'
    )
    assert in_shell("bash", "--norc", "-c", script, "bash", line) == replies


@pytest.mark.parametrize(
    "name",
    ["*", "?ash", "[a-z]*", "!!", "~root", "{a,b}", "#x", "a b", "it's", 'say "x"', "$(touch x)", "`x`", "a;b", "^x"],
)
def test_bash_takes_what_it_is_offered_for_the_name(name: str) -> None:
    script = (
        "source ./kpreempt.bash; name=$1; kpreempt() { printf '%s\\n' \"$name\" :4; }; "
        "COMP_LINE='kpreempt explain ' COMP_POINT=17 COMP_WORDBREAKS=$' \\t\\n=:'; _kpreempt; "
        'eval "set -- ${COMPREPLY[0]}"; printf "%s\\n" "$#" "$1" "${COMPREPLY[0]}"'
    )
    words, taken, offered = in_shell("bash", "--norc", "-c", script, "bash", name)
    assert (words, taken) == ("1", name)
    # History is expanded as a line is read, which no script can do.
    assert "!" not in offered.replace("\\!", "")


EXPLAIN: Any = get_command(make_app("explain")).commands["explain"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("line", "replies"),
    [
        ("kpreempt expl", [f"explain\t{COMMANDS['explain'].summary}"]),
        ("kpreempt explain --output=j", ["--output=json", "--output=jsonl", "--output=jsonpath="]),
        ("kpreempt explain -o j", ["json", "jsonl", "jsonpath="]),
        ("kpreempt explain -f kpreempt.b", ["kpreempt.bash"]),
        ("kpreempt explain --set kpreempt.b", []),
        ("kpreempt drain --snapshot ../fixtures/on-call/cluster.yaml node-d", ["node-d"]),
        ("kpreempt explain --snapshot ../fixtures/on-call/cluster.yaml web", ["web-1\tshop", "web-2\tshop"]),
    ],
)
def test_fish_offers_the_candidates(line: str, replies: list[str]) -> None:
    assert in_shell("fish", "--no-config", "-c", 'source ./kpreempt.fish; complete -C "$argv[1]"', line) == replies


def test_zsh_takes_the_script() -> None:
    assert in_shell(
        "zsh", "-f", "-c", "autoload -U compinit && compinit -D && source ./_kpreempt && echo $_comps[kpreempt]"
    ) == ["_kpreempt"]


def test_answers_that_are_no_verdicts_have_their_own_formats() -> None:
    common = ["text", "json", "yaml", "jsonl", "name", "markdown"]
    templates = ["jsonpath=", "custom-columns="]
    assert offered("at-risk", "-o", "")[0] == [*common, *templates]
    assert offered("pending", "-o", "")[0] == [*common, "html", "wide", *templates]
    for command in ("compare", "who-evicted"):
        assert offered(command, "-o", "")[0] == [*common, "html", *templates]
    assert offered("explain", "-o", "")[0] == [*common[:5], "wide", "markdown", "html", *templates]
    assert offered("pending", "-o", "jsonp") == (["jsonpath="], NO_FILES | NO_SPACE)


def test_algorithms_to_compare_follow_each_other() -> None:
    assert "kube-1.13" in offered("compare", "--algorithms", "")[0]
    assert offered("compare", "--algorithms", "kube-1.36,kube-1.1")[0] == ["kube-1.36,kube-1.13", "kube-1.36,kube-1.18"]


def test_options_before_the_command_are_read() -> None:
    assert offered("-n", "s")[0] == ["shop"]
    assert offered("-n", "shop", "expl")[0] == ["explain"]
    assert offered("-n", "shop", "explain", "w")[0] == ["web-1", "web-2"]


def test_help_is_completed_with_commands() -> None:
    assert offered("help", "ex")[0] == ["explain"]


def test_rules_of_ones_own_are_offered_and_a_file_that_is_wrong_takes_none_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    own = '[[check.rule]]\nname = "max-own"\nexpression = "true"\nmessage = "m"\n'
    (tmp_path / "kpreempt.toml").write_text(own)
    for requested in (["check", "--waive", "max-o"], ["rules", "max-o"]):
        assert offered(*requested)[0] == ["max-own"]
    assert "max-own=warn" in offered("check", "--severity", "max-own=")[0]
    (tmp_path / "kpreempt.toml").write_text("[check")
    assert offered("check", "--waive", "max-v")[0] == ["max-victims", "max-victims-per-workload"]
