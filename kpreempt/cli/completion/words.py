"""What the last word of a command line means: a command, an option, or the value of an option or argument."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

Command = TyperGroup | TyperCommand


class Place(NamedTuple):
    """Where a command line stands.

    ``prefix`` is what is there of the thing that is looked for. ``parameter`` is the option or argument whose value
    that is, None where it is an option (``prefix`` starts with a dash) or a command. ``given`` holds the values of the
    options before it by their long names (of a flag, an empty text), ``arguments`` the words that are no options.
    """

    command: Command
    parameter: TyperOption | TyperArgument | None
    prefix: str
    given: dict[str, list[str]]
    arguments: list[str]


def find_place(root: Command, words: Sequence[str]) -> Place:
    """What the last of ``words`` is about; those before it are complete, whether or not they make sense."""
    reading = _Reading(root)
    for word in words[:-1]:
        reading.read(word)
    return reading.place(words[-1] if words else "")


def long_name(option: TyperOption) -> str:
    """The name of an option that goes without abbreviation."""
    return max(option.opts, key=len)


class _Reading:
    """A command line, read up to some word."""

    def __init__(self, root: Command) -> None:
        self._command = root
        self._options = _options(root)
        self._waits_for_value: TyperOption | None = None
        self._has_only_arguments = False
        self._given: dict[str, list[str]] = {}
        self._arguments: list[str] = []

    def read(self, word: str) -> None:
        if self._waits_for_value is not None:
            self._give(self._waits_for_value, word)
            self._waits_for_value = None
        elif self._has_only_arguments or not word.startswith("-") or word == "-":
            self._read_argument(word)
        elif word == "--":
            self._has_only_arguments = True
        else:
            self._read_option(word)

    def place(self, prefix: str) -> Place:
        option = self._waits_for_value
        if option is None and prefix.startswith("-") and not self._has_only_arguments:
            option, prefix = self._value_within(prefix)
        parameter: TyperOption | TyperArgument | None = option
        if parameter is None and not (prefix.startswith("-") and not self._has_only_arguments):
            parameter = self._next_argument()
        return Place(self._command, parameter, prefix, self._given, self._arguments)

    def _value_within(self, word: str) -> tuple[TyperOption | None, str]:
        """The option whose value stands in the same word, as in ``--namespace=sh``, and what is there of it."""
        name, equals, value = word.partition("=")
        option = self._options.get(name)
        if equals and word.startswith("--") and option is not None and not _stands_alone(option):
            return option, value
        return None, word

    def _read_option(self, word: str) -> None:
        name, equals, value = word.partition("=")
        option = self._options.get(name)
        if option is None and not word.startswith("--"):
            self._read_letters(word[1:])
        elif option is not None and (equals or _stands_alone(option)):
            self._give(option, value)
        else:
            self._waits_for_value = option

    def _read_letters(self, letters: str) -> None:
        """Options of one letter written as one word, the last perhaps with its value: ``-vnshop``."""
        for index, letter in enumerate(letters):
            option = self._options.get(f"-{letter}")
            if option is None:
                return
            if not _stands_alone(option):
                if rest := letters[index + 1 :]:
                    self._give(option, rest.removeprefix("="))
                else:
                    self._waits_for_value = option
                return
            self._give(option, "")

    def _read_argument(self, word: str) -> None:
        if isinstance(self._command, TyperGroup):
            command = self._command.commands.get(word)
            if isinstance(command, Command):
                self._command = command
                self._options = _options(command)
                return
        self._arguments.append(word)

    def _next_argument(self) -> TyperArgument | None:
        arguments = [each for each in self._command.params if isinstance(each, TyperArgument)]
        for argument in arguments[len(self._arguments) :]:
            return argument
        return arguments[-1] if arguments and arguments[-1].nargs == -1 else None

    def _give(self, option: TyperOption, value: str) -> None:
        self._given.setdefault(long_name(option), []).append(value)


def _options(command: Command) -> dict[str, TyperOption]:
    """The options by their names; before a command, those of all commands can stand, too."""
    if isinstance(command, TyperGroup):
        commands = [each for each in command.commands.values() if isinstance(each, Command)]
        return {name: option for each in commands for name, option in _options(each).items()}
    return {name: each for each in command.params if isinstance(each, TyperOption) for name in each.opts}


def _stands_alone(option: TyperOption) -> bool:
    """Whether no value follows the option: a flag, or one that is counted."""
    return bool(option.is_flag or option.count)
