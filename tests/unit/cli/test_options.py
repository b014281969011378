from __future__ import annotations

from inspect import signature
from typing import Annotated, Any

import pytest
from typer import Option
from typer.core import TyperOption
from typer.main import get_command

from kpreempt.cli.app import make_app
from kpreempt.cli.options import After, AnswerRequest, Group, Request, with_options
from kpreempt.report.answers import (
    ANSWER_FORMATS,
    BUDGET_FORMATS,
    CHECK_FORMATS,
    PAGE_FORMATS,
    PENDING_FORMATS,
    ROWS,
    VERDICT_FORMATS,
    VERIFY_FORMATS,
)

COMMANDS: dict[str, Any] = get_command(make_app()).commands  # type: ignore[attr-defined]


class Parent(Request):
    first: Annotated[str, Option("--first")] = "a"
    second: Annotated[list[str], Option("--second")] = []
    third: Annotated[bool, Option("--third")] = False


class Child(Parent, without=["third"]):
    new: Annotated[int, Option("--new")]
    second: Annotated[list[str], Option("--second", help="In other words.")] = []
    after_second: Annotated[int, Option("--after-second")] = 1
    pair: Annotated[
        Any, After("first"), Group({"one": Annotated[bool, Option()], "two": Annotated[int, Option()]}, dict)
    ]


def child(request: Child) -> int:
    """The help."""
    return request.new if not request.third and request.pair == {"one": True, "two": None} else -1


def test_a_signature_has_the_fields_in_their_places() -> None:
    parameters = signature(with_options(child)).parameters
    assert list(parameters) == ["new", "first", "one", "two", "second", "after_second"]
    assert [each.default for each in parameters.values()][1:] == ["a", False, None, [], 1]
    assert parameters["new"].default is parameters["new"].empty
    assert with_options(child).__doc__ == "The help."


def test_a_command_gets_a_request_with_groups_made_and_defaults_of_what_is_left_out() -> None:
    assert with_options(child)(new=7, first="b", one=True, two=None, second=[], after_second=1) == 7


PAGES = ("sweep", "compare", "who-preempted")
# Those whose formats are not the usual ones; batch, algorithms, rules and version say them in the option itself.
FORMATS = {
    "explain": VERDICT_FORMATS,
    **dict.fromkeys(("check", "drain"), CHECK_FORMATS),
    "pending": PENDING_FORMATS,
    "budgets": BUDGET_FORMATS,
    "verify": VERIFY_FORMATS,
    **dict.fromkeys(PAGES, PAGE_FORMATS),
}


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"batch", "algorithms", "rules", "version"}))
def test_the_help_lists_the_formats_of_the_answer(command: str) -> None:
    options = [each for each in COMMANDS[command].params if isinstance(each, TyperOption) and "-o" in each.opts]
    first, *others, last = FORMATS.get(command, ANSWER_FORMATS)
    words = f"{', '.join([f'{first} (default)', *others])} or {last}, into FILE"
    assert all((option.help or "").startswith(words) for option in options)


def test_an_answer_without_formats_of_its_own_has_the_usual_ones() -> None:
    own = {each.record.rpartition(":")[2] for each in ROWS if each.formats is not ANSWER_FORMATS}
    with_pages = {"Verdict", "VerdictList", "PendingPods", "PreemptionsOfPod", "Comparison", "Check", "Drain"}
    with_pages |= {"BudgetAudit", "Sweep", "Verification"}
    assert own == with_pages | {"PendingPodsOfContexts", "SessionVerdict", "Algorithms", "GateRuleList", "Versions"}


def test_every_common_option_is_offered_by_a_command_that_leaves_nothing_out() -> None:
    shared = [name for each in AnswerRequest.__mro__ for name in vars(each).get("__annotations__", {})]
    offered = {each.name for each in COMMANDS["budgets"].params}
    assert {name for name in shared if name not in ("_left_out", "connection", "extensions", "intake")} <= offered
