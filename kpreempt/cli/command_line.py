"""The command line as users type it: Typer commands built from requests, options before the command, and the help.

Typer's own help lists all options together and cuts off summaries. Here options are listed under the headings that they
are declared with, followed by the examples of ``COMMANDS``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from inspect import Parameter, Signature, cleandoc
from typing import Annotated, Any, get_args

from typer import Argument, Context
from typer import Option as TypersOption
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kpreempt.cli.families import family_for
from kpreempt.cli.requests import COMMANDS, GROUPS
from kpreempt.errors import UsageError, nearest
from kpreempt.library.options import PANELS, Request, fields_of, group_of, option_of, options_of

# The options of the program itself.
OF_PROGRAM = ("--help", "-h", "--version")
# Typer's heading for --help.
OTHER_OPTIONS = "Other options"
# In the context of a command: that its help is the short one.
_IS_SHORT = "kpreempt.short_help"


def command_of(name: str, request: type[Request], place: str) -> Callable[..., int]:
    """Build a command for Typer: its options come from a request, and ``module:function`` answers it.

    Schedulers of other families are answered as the table of families says.
    """
    groups = {field: group for field, each in fields_of(request).items() if (group := group_of(each))}
    parameters: list[Parameter] = []
    for field, annotation in fields_of(request).items():
        if field in groups:
            options = groups[field].options.items()
            parameters += [_parameter(*each, False if get_args(each[1])[0] is bool else None) for each in options]
        else:
            parameters.append(_parameter(field, annotation, getattr(request, field, Parameter.empty)))

    def run(**values: Any) -> int:
        given = [
            each.name
            for each in parameters
            if (value := values[each.name]) is not None and value is not False and value not in ([], each.default)
        ]
        for field, group in groups.items():
            values[field] = group.make({option: values.pop(option) for option in group.options})
        query = request(**values, set_options=given, command_name=name)
        family = family_for(query)
        module, _, function = place.partition(":")
        answering = import_module(f"kpreempt.cli.{module}") if name not in family.answers else family.module()
        code: int = getattr(answering, family.answers.get(name, function))(query)
        return code

    run.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {each.name: each.annotation for each in parameters}
    run.__name__, run.__doc__ = request.__name__, request.__doc__
    run.request = request  # type: ignore[attr-defined]
    return run


def _parameter(name: str, annotation: Any, default: Any) -> Parameter:
    """Return the option of a field as a parameter that Typer understands."""
    option, declared = option_of(annotation), get_args(annotation)[0]
    assert option is not None
    if declared is Context:
        return Parameter(name, Parameter.KEYWORD_ONLY, annotation=Context)
    common: dict[str, Any] = {"metavar": option.metavar, "help": option.help if isinstance(option.help, str) else ""}
    # Formats, whose help is computed, include their default.
    states_default = not isinstance(option.help, str) or "default" in option.help
    info = (
        TypersOption(
            *option.names,
            **common,
            min=option.min,
            max=option.max,
            count=option.counts,
            rich_help_panel=option.panel,
            show_default=not (option.counts or states_default),
        )
        if option.names
        else Argument(**common, show_default=default not in ([], Parameter.empty) and not states_default)
    )
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[declared, info])


def complete_help(command: Any) -> None:
    """Fill in the help of options whose help is computed from the request."""
    request: type[Request] = getattr(command.callback, "request", Request)
    options = options_of(request)
    for each in command.params:
        option = options.get(each.name)
        if option is not None and not isinstance(option.help, str):
            each.help = option.help(request)


class Program(TyperGroup):
    """The program; options of its commands may precede the command: ``kpreempt -n shop pending``."""

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]
        """Return all options, without conversion of texts."""
        return _with_coercion(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Move options before the command behind it. Raises ``UsageError`` for options that no command has."""
        args = self._with_command_first(args)
        if args[:1] == ["help"] and args[1:] not in (["--help"], ["-h"]):
            # ``help COMMAND`` is ``COMMAND --help``.
            args = [*[each for each in args[1:] if not each.startswith("-")][:1], "--help"]
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Context) -> Any:  # type: ignore[override]
        """The help option, which is the same in both spellings here."""
        return _with_help(super().get_help_option(ctx), "Show this help and exit.")

    def format_commands(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """The commands in their groups, each with its summary in the same column."""
        width = max(map(len, COMMANDS))
        for group in GROUPS:
            with formatter.section(group):
                rows = [(name, row.summary) for name, row in COMMANDS.items() if row.group == group]
                formatter.write_dl([(name.ljust(width), text) for name, text in rows])

    def _with_command_first(self, args: list[str]) -> list[str]:
        """Return the arguments with the options before the command moved behind it."""
        # Each option name of any command, and whether a value follows it.
        takes_value = {
            name: not (option.is_flag or option.count)
            for command in self.commands.values()
            for option in command.params
            if isinstance(option, TyperOption)
            for name in option.opts
        }
        index = 0
        while index < len(args) and args[index].startswith("-") and args[index] not in ("-", "--"):
            word = args[index]
            if word in OF_PROGRAM:
                return [word]
            index += 1 + _needs_next(word, takes_value)
        if index == 0:
            return args
        if index >= len(args):
            raise UsageError(f"{args[0]}: no command given", hint="kpreempt --help")
        return [args[index], *args[:index], *args[index + 1 :]]


class AnswerCommand(TyperCommand):
    """A command whose help lists its options under headings, followed by examples."""

    def get_params(self, ctx: Context) -> list[Any]:  # type: ignore[override]
        """Return all options, without conversion of texts."""
        return _with_coercion(super().get_params(ctx))

    def parse_args(self, ctx: Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Whether the short help is meant is only known from the words."""
        ctx.meta[_IS_SHORT] = "--help" not in args
        return super().parse_args(ctx, args)

    def get_help_option(self, ctx: Context) -> Any:  # type: ignore[override]
        """The help option, whose spellings differ."""
        return _with_help(super().get_help_option(ctx), "Show common options (-h) or all options (--help).")

    def format_help_text(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """The description, or its first paragraph."""
        if ctx.meta.get(_IS_SHORT):
            formatter.write_paragraph()
            with formatter.indentation():
                formatter.write_text(cleandoc(self.help or "").split("\n\n", maxsplit=1)[0])
        else:
            super().format_help_text(ctx, formatter)

    def format_options(self, ctx: Context, formatter: Any) -> None:  # type: ignore[override]
        """Write arguments, then options by heading, then examples."""
        complete_help(self)
        is_short, num_hidden = bool(ctx.meta.get(_IS_SHORT)), 0
        options = options_of(getattr(self.callback, "request", Request))
        arguments = [each.get_help_record(ctx) for each in self.params if isinstance(each, TyperArgument)]
        if shown := [each for each in arguments if each]:
            with formatter.section("Arguments"):
                # Without Typer's name of the type.
                formatter.write_dl([(name.partition(" <")[0], text) for name, text in shown])
        panels: dict[str, list[Any]] = {panel: [] for panel in PANELS}
        for each in self.get_params(ctx):
            if isinstance(each, TyperOption) and (row := each.get_help_record(ctx)):
                option = options.get(each.name or "")
                if is_short and option is not None and not option.is_everyday:
                    num_hidden += 1
                else:
                    panels.setdefault(each.rich_help_panel or OTHER_OPTIONS, []).append(row)
        for panel, rows in panels.items():
            if rows:
                with formatter.section(panel):
                    formatter.write_dl(rows)
        program = ctx.find_root().info_name
        with formatter.section("Examples"):
            for example in COMMANDS[self.name or ""].examples:
                # Not wrapped, so that it can be pasted.
                formatter.write(f"  {program} {example}\n")
        if num_hidden:
            noun = "option" if num_hidden == 1 else "options"
            formatter.write_paragraph()
            formatter.write(f"{num_hidden} more {noun}: {ctx.command_path} --help\n")


def _with_help(option: Any, text: str) -> Any:
    if option is not None:
        option.help = text
    return option


def _with_coercion(options: list[Any]) -> list[Any]:
    """Give each option a ``_Coercion``."""
    for each in options:
        if "get_runtime_param" not in vars(each):
            each.get_runtime_param = partial(_Coercion, each.get_runtime_param)
    return options


class _Coercion:
    """Converts the words of an option to its value; texts need no conversion.

    ``otherwise`` returns Typer's own converter, for numbers. It loads pydantic, which takes as long as the rest of a
    start.
    """

    def __init__(self, otherwise: Callable[[], Any]) -> None:
        self._otherwise = otherwise

    def coerce(self, value: Any, param: TyperArgument | TyperOption, ctx: Context) -> Any:
        """Return the value that the command gets. Raises Typer's error for words that are not a number."""
        kind, is_words = param.type_descriptor.annotation, isinstance(value, str | list | tuple)
        if is_words and kind not in (str, list[str]):
            return self._otherwise().coerce(value, param=param, ctx=ctx)
        if kind == list[str]:
            return list(value or ())
        return value


def _needs_next(word: str, takes_value: Mapping[str, bool]) -> bool:
    """Return whether the option's value is the next word. Raises ``UsageError`` for an option that no command has."""
    name, equals, _ = word.partition("=")
    if name in takes_value:
        return takes_value[name] and not equals
    if not word.startswith("--") and f"-{word[1]}" in takes_value:
        # Several letters in one word, the last perhaps with its value.
        for index, letter in enumerate(word[1:], start=2):
            if takes_value.get(f"-{letter}", True):
                return index == len(word)
        return False
    hint = nearest(name, [*takes_value, *OF_PROGRAM]) if len(name) > 2 else ""
    raise UsageError(f"no such option: {name}", hint=hint)
