from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.core import TyperOption
from typer.main import get_command

from kpreempt.cli.app import make_app
from kpreempt.cli.requests import COMMANDS as ROWS
from kpreempt.cli.requests import GROUPS
from kpreempt.library.options import PANELS, options_of
from kpreempt.scheduler_table import DEFAULT_ALGORITHM

ROOT = Path(__file__).parents[3]
COMMANDS: dict[str, Any] = get_command(make_app()).commands  # type: ignore[attr-defined]
EVERYDAY = {
    option.long_name
    for command in COMMANDS.values()
    for option in options_of(command.callback.request).values()
    if option.is_everyday
}
Kpreempt = Callable[..., Any]


def test_the_commands_are_listed_in_their_groups(kpreempt: Kpreempt) -> None:
    shown = kpreempt().stdout
    assert shown == kpreempt("--help").stdout == kpreempt("-h").stdout
    assert max(map(len, shown.splitlines())) <= 80
    headings = re.findall(r"^(\S.*):$", shown, re.MULTILINE)
    assert headings == ["Options", *GROUPS]
    assert "\n  who-evicted  Find out what evicted a pod\n" in shown


def test_every_command_is_in_one_group_with_a_short_summary() -> None:
    listed = [name for group in GROUPS for name, row in ROWS.items() if row.group == group]
    assert sorted(listed) == sorted(ROWS)
    assert [text for text in (row.summary for row in ROWS.values()) if len(text) > 50 or text.endswith(".")] == []


def test_everyday_options_are_options() -> None:
    names = {name for command in COMMANDS.values() for option in command.params for name in option.opts}
    assert sorted(EVERYDAY - names) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_the_short_help_has_everyday_options_and_says_how_many_more_there_are(kpreempt: Kpreempt, command: str) -> None:
    def options_in(text: str) -> set[str]:
        panels = text.partition("\nExamples:\n")[0]
        return set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", panels, re.MULTILINE))

    short, whole = kpreempt(command, "-h").stdout, kpreempt(command, "--help").stdout
    hidden = options_in(whole) - options_in(short)
    assert options_in(short) <= options_in(whole)
    assert not hidden & EVERYDAY
    more = re.findall(r"^(\d+) more options?: kpreempt \S+ --help$", short, re.MULTILINE)
    assert [int(each) for each in more] == ([len(hidden)] if hidden else [])
    assert len(short) <= len(whole) + 40


@pytest.mark.parametrize("command", COMMANDS)
def test_options_stand_under_headings_in_their_order_volcanos_last(kpreempt: Kpreempt, command: str) -> None:
    shown = kpreempt(command, "--help").stdout
    headings = [each for each in re.findall(r"^(\S.*):$", shown, re.MULTILINE) if each in PANELS]
    assert headings == [each for each in PANELS if each in headings]
    text, _, examples = shown.partition("\nExamples:\n")
    assert max(map(len, text.splitlines())) <= 80
    assert examples.count("  kpreempt ") == 2


@pytest.mark.parametrize(
    ("command", "option", "heading"),
    [
        *(
            (command, option, "Simulation")
            for command in ("check", "drain")
            for option in ("--runs", "--seed", "--worst-case", "--max-runs")
        ),
        ("check", "--job-duration", "Simulation"),
        ("check", "--create-namespace", "The change"),
        ("drain", "-l", "The drain"),
        ("verify", "--for", "The cluster"),
        ("explain", "--runs", "Volcano"),
    ],
)
def test_an_option_stands_under_the_heading_of_what_it_is_about(
    kpreempt: Kpreempt, command: str, option: str, heading: str
) -> None:
    shown = kpreempt(command, "--help").stdout
    before = re.split(rf"^  {option}\b", shown, flags=re.MULTILINE)[0]
    assert re.findall(r"^(\S.*):$", before, re.MULTILINE)[-1] == heading


def test_an_option_takes_a_value_in_every_command_or_in_none() -> None:
    seen: dict[str, bool] = {}
    for command in COMMANDS.values():
        for option in command.params:
            if isinstance(option, TyperOption):
                stands_alone = option.is_flag or option.count
                assert all(seen.setdefault(name, stands_alone) == stands_alone for name in option.opts)


@pytest.mark.parametrize("example", [example for row in ROWS.values() for example in row.examples])
def test_examples_run_where_the_repository_is(
    kpreempt: Kpreempt, example: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "fixtures").symlink_to(ROOT / "fixtures")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(example)
    if words[0] == "mcp":
        # It serves the client at its standard input; here there is no client.
        command = [sys.executable, "-m", "kpreempt", *words]
        served = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
        assert (served.returncode, served.stdout) == (0, ""), served.stderr
        return
    run = kpreempt(*words)
    # A gate that fails is an answer, too.
    assert run.returncode in ((0, 1) if example.startswith(("check", "drain")) or "--fail-on" in example else (0,)), (
        run.stderr
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_help_and_a_command_is_its_help(kpreempt: Kpreempt, command: str) -> None:
    assert kpreempt("help", command).stdout == kpreempt(command, "--help").stdout


def test_an_option_with_algorithms_names_the_default(kpreempt: Kpreempt) -> None:
    assert f"auto,{DEFAULT_ALGORITHM};" in " ".join(kpreempt("compare", "--help").stdout.split())


def test_help_alone_is_the_programs(kpreempt: Kpreempt) -> None:
    assert kpreempt("help").stdout == kpreempt("--help").stdout


ON_CALL = ["--snapshot", str(ROOT / "fixtures/on-call/cluster.yaml"), "--now", "2026-11-21T03:12:00Z"]


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(["-n", "shop"], id="an option with its value"),
        pytest.param(["--namespace=shop"], id="a value in the same word"),
        pytest.param(["-nshop"], id="a letter and its value"),
        pytest.param(["-vn", "shop"], id="letters in one word"),
        pytest.param(["-v", "-n", "shop"], id="a flag and an option"),
        pytest.param(["--strict", *ON_CALL, "-n", "shop"], id="several"),
    ],
)
def test_options_may_stand_before_the_command(kpreempt: Kpreempt, before: list[str]) -> None:
    first = kpreempt(*before, "pending", *ON_CALL, "-o", "json")
    assert first.stderr.count("Traceback") == 0
    assert first.stdout == kpreempt("pending", *before, *ON_CALL, "-o", "json").stdout != ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["-n", "shop"], "-n: no command given\nhint: kpreempt --help\n"),
        (["--namespce", "shop", "pending"], "no such option: --namespce\nhint: --namespace\n"),
        (["-n", "shop", "pendin"], "kpreempt: no such command 'pendin'\nhint: pending\n"),
        (["-n", "shop", "algorithms"], "kpreempt algorithms: no such option: -n\nhint: kpreempt algorithms --help\n"),
        (["help", "explian"], "kpreempt: no such command 'explian'\nhint: explain\n"),
    ],
)
def test_what_is_wrong_before_the_command_is_reported(kpreempt: Kpreempt, arguments: list[str], message: str) -> None:
    run = kpreempt(*arguments)
    assert (run.returncode, run.complaint, run.stdout) == (2, message, "")


DEMO = ["--snapshot", str(ROOT / "fixtures/demo/cluster.yaml"), "-f", str(ROOT / "fixtures/demo/api.yaml")]


@pytest.mark.parametrize(
    ("arguments", "hint"),
    [
        (["explain", *DEMO, "-o", "jsn"], "json"),
        (["explain", *DEMO, "--color", "allways"], "always"),
        (["explain", *DEMO, "--algorithm", "kube1.36"], "kube-1.36"),
        (["explain", *DEMO, "--algorithm", "volcano"], "volcano-1.8"),
        (["explain", *DEMO, "--preemption-policy", "Nver"], "Never"),
        (["explain", *DEMO, "--without", "pdo/web"], "pod/web"),
        (["explain", *DEMO, "--without", "nod/node-a"], "node/node-a"),
        (["budgets", *DEMO[:2], "--fail-on", "eror"], "error"),
        (["check", *DEMO, "--waive", "max-victim"], "max-victims"),
        (["check", *DEMO, "--delete", "deplyoment/x"], "deployment"),
        (["completion", "bsh"], "bash"),
        (["algorithms", "-o", "yml"], "yaml"),
        (["explain", *DEMO, "-o", "zzz"], "text, json, yaml, jsonl, name, wide, markdown, html"),
    ],
)
def test_a_name_of_kpreempts_own_that_is_nearly_right_gets_a_hint(
    kpreempt: Kpreempt, arguments: list[str], hint: str
) -> None:
    run = kpreempt(*arguments)
    assert run.returncode in (2, 3)
    assert run.stderr.endswith(f"hint: {hint}\n")


def test_version_names_what_is_modeled(kpreempt: Kpreempt) -> None:
    from kpreempt import __version__

    assert kpreempt("version").stdout.startswith(f"kpreempt {__version__}, Python 3.")
    assert kpreempt("version", "-o", "jsonpath={.clientVersion}").stdout == __version__
    assert kpreempt("version", "-o", "name").stdout == kpreempt("algorithms", "-o", "name").stdout
