import ast
from collections import Counter
from inspect import signature
from pathlib import Path
from typing import Annotated, Any

import pytest
from typer.core import TyperOption
from typer.main import get_command

import kpreempt.cli.about
from kpreempt.cli.app import make_app
from kpreempt.cli.command_line import command_of, complete_help
from kpreempt.cli.families import FAMILIES
from kpreempt.cli.requests import AnswerRequest
from kpreempt.library.options import PANELS, Group, Option, Request, fields_of, group_of, kind_of, option_of
from kpreempt.report.answers import ANSWER_FORMATS, ROWS, format_names
from kpreempt.scheduler_table import ALGORITHMS, ALL_ALGORITHMS

COMMANDS: dict[str, Any] = get_command(make_app()).commands  # type: ignore[attr-defined]
SOURCES = Path(kpreempt.__file__).parent


class Parent(Request):
    first: Annotated[str, Option(("--first",))] = "a"
    second: Annotated[list[str], Option(("--second",))] = []
    third: Annotated[bool, Option(("--third",))] = False
    made: int = 0


class Child(Parent, without=["third"]):
    """The help."""

    new: Annotated[int, Option(("--new",))]
    pair: Annotated[
        Any,
        Group({"one": Annotated[bool, Option(("--one",))], "two": Annotated[int | None, Option(("--two",))]}, dict),
    ]
    second: Annotated[list[str], Option(("--second",), "In other words.")] = []


def answered(request: Child) -> int:
    """What a command's module does."""
    return request.new if not request.third and request.pair == {"one": True, "two": None} else -1


def test_a_signature_has_own_fields_before_inherited_ones() -> None:
    command = command_of("child", Child, "about:answered")
    parameters = signature(command).parameters
    assert list(parameters) == ["new", "one", "two", "second", "first"]
    assert [each.default for each in parameters.values()][1:] == [False, None, [], "a"]
    assert parameters["new"].default is parameters["new"].empty
    assert command.__doc__ == "The help."


def test_a_command_gets_a_request_with_groups_made_and_defaults_of_what_is_left_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kpreempt.cli.about, "answered", answered, raising=False)
    command = command_of("child", Child, "about:answered")
    assert command(new=7, first="b", one=True, two=None, second=[]) == 7


def test_a_request_with_other_values_is_another() -> None:
    request = Parent(first="b")
    assert (request.having(second=["c"]).first, request.having(second=["c"]).second, request.second) == ("b", ["c"], [])


@pytest.mark.parametrize(
    ("declared", "kind"),
    [(str, str), (str | None, str), (list[str], list), (list[str] | None, list), (int | None, int), (bool, bool)],
)
def test_a_field_has_values_of_a_kind(declared: Any, kind: type) -> None:
    assert kind_of(Annotated[declared, Option()]) is kind


def names_declared(file: Path) -> list[str]:
    """The names in each ``Option((NAME, ...), ...)`` of a module."""
    calls = [
        node
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Option" and node.args
    ]
    return [
        name.value
        for call in calls
        if isinstance(call.args[0], ast.Tuple)
        for name in call.args[0].elts
        if isinstance(name, ast.Constant)
    ]


def test_the_name_of_each_option_is_declared_in_one_place() -> None:
    declared = Counter(name for file in SOURCES.rglob("*.py") for name in names_declared(file))
    assert [name for name, number in declared.items() if number > 1] == []
    offered = {
        name
        for command in COMMANDS.values()
        for option in command.params
        if isinstance(option, TyperOption) and option.name != "help"
        for name in option.opts
    }
    rules = {name for name in offered if name.startswith("--") and name not in declared}
    assert offered - declared.keys() == rules
    # Those of the gate's rules are made of the table of rules.
    from kpreempt.gate_rules import RuleId

    assert rules <= {f"--{rule}" for rule in RuleId}


def options_of(request: type[Request]) -> list[Option]:
    fields = fields_of(request).values()
    grouped = [each for field in fields if (group := group_of(field)) for each in group.options.values()]
    return [option for each in [*fields, *grouped] if (option := option_of(each))]


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_option_stands_under_a_heading(command: str) -> None:
    options = options_of(COMMANDS[command].callback.request)
    assert {each.panel for each in options if each.names} <= set(PANELS)


@pytest.mark.parametrize("command", sorted(COMMANDS.keys() - {"batch"}))
def test_the_help_lists_the_formats_of_the_answer(command: str) -> None:
    complete_help(COMMANDS[command])
    options = [each for each in COMMANDS[command].params if isinstance(each, TyperOption) and "-o" in each.opts]
    for option in options:
        first, *others, last = format_names(COMMANDS[command].callback.request.answer)
        words = f"{', '.join([f'{first} (default)', *others])} or {last}"
        assert f": {words}." in (option.help or "")


def test_every_command_that_writes_an_answer_says_which() -> None:
    records = {each.record.rpartition(":")[2] for each in ROWS}
    for command in COMMANDS.values():
        request = command.callback.request
        if any("-o" in each.opts for each in command.params) and command.name != "batch":
            assert request.answer in records


def test_an_answer_without_formats_of_its_own_has_the_usual_ones() -> None:
    own = {each.record.rpartition(":")[2] for each in ROWS if each.formats is not ANSWER_FORMATS}
    with_pages = {
        "Verdict",
        "VerdictList",
        "PendingPods",
        "EvictionsOfPod",
        "EvictedPods",
        "ExplainedEvents",
        "Comparison",
        "Check",
        "Drain",
    }
    with_pages |= {"BudgetAudit", "Sweep", "Verification"}
    assert own == with_pages | {"PendingPodsOfContexts", "SessionVerdict", "Algorithms", "GateRuleList", "Versions"}


def test_every_common_option_is_offered_by_a_command_that_leaves_nothing_out() -> None:
    offered = {each.name for each in COMMANDS["budgets"].params}
    assert {name for name, each in fields_of(AnswerRequest).items() if option_of(each)} <= offered


def test_the_families_are_those_of_the_algorithms() -> None:
    assert {each.algorithm for each in FAMILIES} - {""} == set(ALL_ALGORITHMS) - set(ALGORITHMS)
    for family in FAMILIES:
        assert family.answers.keys() | set(family.decides_single_pods) <= COMMANDS.keys()
        assert all(callable(getattr(family.module(), each)) for each in family.answers.values())
        assert all({each.name for each in FAMILIES} >= set(option.families) for option in options_of(AnswerRequest))
