"""Every command that answers a request does so through ``answer``, for every scheduler family."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

from kpreempt.cli import process
from kpreempt.cli.requests import COMMANDS
from kpreempt.library import handlers, requests
from kpreempt.library.options import Request
from kpreempt.library.schedulers import Answered, Context

ROOT = Path(__file__).parents[3]
# They list what is built in, copy a cluster, or pass on requests of other commands.
_ANSWER_NOTHING = {
    "rules",
    "algorithms",
    "completion",
    "snapshot",
    "record",
    "help",
    "version",
    "mcp",
    "sweep",
}
_KUEUE = "--snapshot fixtures/kueue/cluster.yaml --algorithm kueue-0.19"
_OTHER_ACTIONS = {
    "explain, Volcano": (
        "explain -f fixtures/volcano/job-single.yaml --snapshot fixtures/volcano/either-node.yaml"
        " --algorithm volcano-1.8",
        requests.ExplainJobs,
    ),
    "explain, Kueue": (f"explain -f fixtures/kueue/train.yaml {_KUEUE}", requests.ExplainWorkloads),
    "pending, Kueue": (f"pending {_KUEUE}", requests.PendingWorkloads),
    "at-risk, Kueue": (f"at-risk -A {_KUEUE}", requests.WorkloadsAtRisk),
    "compare, batch": (
        "compare --algorithms kube-1.13,kube-1.36 --batch fixtures/batch/scenarios.jsonl",
        requests.Compare,
    ),
    "compare, upgrade": (
        "compare --upgrade-to 1.37 --algorithm kube-1.36 --snapshot fixtures/on-call/cluster.yaml",
        requests.Upgrade,
    ),
    "batch": ("batch fixtures/batch/scenarios.jsonl --jobs 1", requests.Decide),
}


@pytest.fixture
def requested(monkeypatch: pytest.MonkeyPatch) -> list[type[Request]]:
    """The classes of the requests that ``answer`` gets."""
    seen: list[type[Request]] = []
    function_of = handlers._function_of

    def noted(request: Request) -> Callable[[Context, Request], Answered]:
        seen.extend(type(request).__mro__)
        return function_of(request)

    monkeypatch.setattr(handlers, "_function_of", noted)
    monkeypatch.chdir(ROOT)
    return seen


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - _ANSWER_NOTHING))
def test_a_command_is_answered_by_the_library(command: str, requested: list[type[Request]]) -> None:
    process.run([*shlex.split(COMMANDS[command].examples[0]), *(["--jobs", "1"] if command == "batch" else [])])
    assert requested


@pytest.mark.parametrize(("line", "kind"), _OTHER_ACTIONS.values(), ids=_OTHER_ACTIONS)
def test_a_family_is_answered_by_the_library(line: str, kind: type[Request], requested: list[type[Request]]) -> None:
    process.run(shlex.split(line))
    assert kind in requested


@pytest.mark.parametrize("kind", [each for each in vars(requests).values() if getattr(each, "answered_by", "")])
def test_a_request_names_its_function(kind: type[Request]) -> None:
    module, _, function = kind.answered_by.partition(":")
    assert callable(getattr(import_module(f"kpreempt.library.{module}"), function))
