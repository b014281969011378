"""What each option and argument can be, by its name: an option means the same in every command.

First comes what the last word of a command line means: a command, an option, or the value of an option or argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kpreempt.cli.command_groups import SUMMARIES
from kpreempt.cli.command_line import complete_help
from kpreempt.library.options import Request
from kpreempt.scheduler_table import (
    ALGORITHMS,
    ALL_ALGORITHMS,
    KUBE_ALGORITHMS,
    KUBE_RANGE,
    LATEST_VERSION,
    PREFIX,
    RELEASES,
)

Command = TyperGroup | TyperCommand


class CursorPosition(NamedTuple):
    """Where a command line stands.

    ``prefix`` is what is there of the thing that is looked for. ``parameter`` is the option or argument whose value
    that is, None where it is an option (``prefix`` starts with a dash) or a command. ``options`` holds the values of
    the options before it by their long names (of a flag, an empty text), ``arguments`` the words that are no options.
    """

    command: Command
    parameter: TyperOption | TyperArgument | None
    prefix: str
    options: dict[str, list[str]]
    arguments: list[str]


def long_name(option: TyperOption) -> str:
    """The name of an option that goes without abbreviation."""
    return max(option.opts, key=len)


class _Reading:
    """A command line, read up to some word."""

    def __init__(self, root: Command) -> None:
        self._command = root
        self._options_of = _options_of(root)
        self._waits_for_value: TyperOption | None = None
        self._has_only_arguments = False
        self._given: dict[str, list[str]] = {}
        self._arguments: list[str] = []

    def read(self, word: str) -> None:
        if self._waits_for_value is not None:
            self._give(self._waits_for_value, word)
            self._waits_for_value = None
        elif self._has_only_arguments or not word.startswith("-") or word == "-":
            command = self._command.commands.get(word) if isinstance(self._command, TyperGroup) else None
            if isinstance(command, Command):
                self._command, self._options_of = command, _options_of(command)
            else:
                self._arguments.append(word)
        elif word == "--":
            self._has_only_arguments = True
        else:
            name, equals, value = word.partition("=")
            option = self._options_of.get(name)
            if option is None and not word.startswith("--"):
                self._read_letters(word[1:])
            elif option is not None and (equals or _stands_alone(option)):
                self._give(option, value)
            else:
                self._waits_for_value = option

    def place(self, prefix: str) -> CursorPosition:
        option = self._waits_for_value
        if option is None and prefix.startswith("-") and not self._has_only_arguments:
            # The value may stand in the same word, as in ``--namespace=sh``.
            name, equals, value = prefix.partition("=")
            found = self._options_of.get(name)
            if equals and prefix.startswith("--") and found is not None and not _stands_alone(found):
                option, prefix = found, value
        parameter: TyperOption | TyperArgument | None = option
        if parameter is None and not (prefix.startswith("-") and not self._has_only_arguments):
            arguments = [each for each in self._command.params if isinstance(each, TyperArgument)]
            last = arguments[-1] if arguments and arguments[-1].nargs == -1 else None
            parameter = next(iter(arguments[len(self._arguments) :]), last)
        return CursorPosition(self._command, parameter, prefix, self._given, self._arguments)

    def _read_letters(self, letters: str) -> None:
        """Options of one letter written as one word, the last perhaps with its value: ``-vnshop``."""
        for index, letter in enumerate(letters):
            option = self._options_of.get(f"-{letter}")
            if option is None:
                return
            if not _stands_alone(option):
                if rest := letters[index + 1 :]:
                    self._give(option, rest.removeprefix("="))
                else:
                    self._waits_for_value = option
                return
            self._give(option, "")

    def _give(self, option: TyperOption, value: str) -> None:
        self._given.setdefault(long_name(option), []).append(value)


def _options_of(command: Command) -> dict[str, TyperOption]:
    """The options by their names; before a command, those of all commands can stand, too."""
    if isinstance(command, TyperGroup):
        commands = [each for each in command.commands.values() if isinstance(each, Command)]
        return {name: option for each in commands for name, option in _options_of(each).items()}
    return {name: each for each in command.params if isinstance(each, TyperOption) for name in each.opts}


def _stands_alone(option: TyperOption) -> bool:
    """Whether no value follows the option: a flag, or one that is counted."""
    return bool(option.is_flag or option.count)


# What the shell is to do besides, as cobra numbers it: bits of one number.
DEFAULT = 0
NO_SPACE = 2
NO_FILES = 4

_POD_PREFIXES = ("pod/", "pods/", "po/")
_FILE_METAVARS = ("FILE", "PATH", "DIR")
_POLICIES = {"PreemptLowerPriority": "evicts pods of lower priority", "Never": "waits for room"}
_AUTO = {"auto": "that of the cluster's own version"}
_ON = {True: "on", False: "off"}
_COLORS = {"auto": "where it is a terminal, and NO_COLOR is not set", "always": "", "never": ""}


class Candidate(NamedTuple):
    """One thing that the word can become, and a few words on it."""

    value: str
    help: str = ""


class Completion(NamedTuple):
    """The candidates in the order to show, and the bits of what the shell is to do besides."""

    candidates: Sequence[Candidate]
    directive: int = NO_FILES


class Names(Protocol):
    """Where names come from that only a cluster or a kubeconfig knows. Nothing where they are not to be had in time."""

    def of_kind(self, plural: str, place: CursorPosition) -> Sequence[Candidate]:
        """Objects of a kind: ``pods``, ``nodes``, ``namespaces`` or ``priorityclasses``."""

    def in_kubeconfig(self, section: str, place: CursorPosition) -> Sequence[Candidate]:
        """Entries of a section of the kubeconfig: ``contexts``, ``clusters`` or ``users``."""


_Source = Callable[[CursorPosition, Names], Completion]


def complete(root: Command, words: Sequence[str], names: Names) -> Completion:
    """What the last of ``words`` can become."""
    # What the last of ``words`` is about; those before it are complete, whether or not they make sense.
    reading = _Reading(root)
    for word in words[:-1]:
        reading.read(word)
    place = reading.place(words[-1] if words else "")
    if isinstance(place.parameter, TyperArgument) and place.command.name == "help":
        found = Completion(_commands(place._replace(command=root, arguments=[])))
    elif isinstance(place.parameter, TyperOption):
        source = _SOURCES.get(long_name(place.parameter))
        found = source(place, names) if source else _by_metavar(place)
    elif isinstance(place.parameter, TyperArgument):
        if place.command.name == "rules":
            found = _rules(place, names)
        elif place.command.name == "explain":
            found = _pods_or_workloads(place, names)
        elif "pod" in _metavar(place).lower():
            found = _pods(place, names)
        else:
            found = _by_metavar(place)
    elif place.prefix.startswith("-"):
        found = Completion(_options(place))
    else:
        found = Completion(_commands(place))
    return Completion([each for each in found.candidates if each.value.startswith(place.prefix)], found.directive)


def _by_metavar(place: CursorPosition) -> Completion:
    """Files for FILE and PATH, the words of ``this|that``, and otherwise nothing."""
    metavar = _metavar(place)
    if "|" in metavar:
        return Completion([Candidate(each) for each in metavar.split("|")])
    return Completion((), DEFAULT if metavar in _FILE_METAVARS else NO_FILES)


def _metavar(place: CursorPosition) -> str:
    return (place.parameter.metavar if place.parameter else "") or ""


def _commands(place: CursorPosition) -> list[Candidate]:
    if not isinstance(place.command, TyperGroup) or place.arguments:
        return []
    commands = place.command.commands.items()
    return [Candidate(name, SUMMARIES.get(name, "")) for name, each in commands if not each.hidden]


def _options(place: CursorPosition) -> list[Candidate]:
    """The options of the command that can still be given; those of one letter only after a single dash."""
    complete_help(place.command)
    shown = [Candidate("--help", "Show this message and exit")]
    for option in place.command.params:
        if not isinstance(option, TyperOption) or option.hidden:
            continue
        if long_name(option) in place.options and not option.multiple:
            continue
        names = [*option.opts, *option.secondary_opts]
        extra_fields = [name for name in names if name.startswith("--") or place.prefix == "-"]
        shown += [Candidate(name, _sentence(option.help)) for name in extra_fields]
    return sorted(shown, key=lambda each: each.value.lstrip("-"))


def _sentence(text: str | None) -> str:
    """The first sentence of a help text, on one line."""
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".")


def _of_kind(plural: str) -> _Source:
    return lambda place, names: Completion(names.of_kind(plural, place))


def _in_kubeconfig(section: str) -> _Source:
    return lambda place, names: Completion(names.in_kubeconfig(section, place))


def _words(help_by_word: dict[str, str]) -> _Source:
    return lambda _place, _names: Completion([Candidate(*item) for item in help_by_word.items()])


def _pods(place: CursorPosition, names: Names) -> Completion:
    lead = next((each for each in _POD_PREFIXES if place.prefix.startswith(each)), "")
    return Completion([Candidate(lead + name, help_) for name, help_ in names.of_kind("pods", place)])


def _pods_or_workloads(place: CursorPosition, names: Names) -> Completion:
    """Names after their kind, in one word (``deploy/web``) or in two; pods without one."""
    kind, slash, _ = place.prefix.rpartition("/")
    if place.arguments:
        kind, slash = place.arguments[0], ""
    if not kind:
        return _pods(place, names)
    from kpreempt.analysis.workload_pods import WORKLOAD_KINDS, kind_of

    # The last of its names is the plural.
    plural = WORKLOAD_KINDS[kind_of(kind)][-1] if kind_of(kind) else ""
    lead = f"{kind}/" if slash else ""
    found = names.of_kind(plural, place) if plural not in ("", "podtemplates") else []
    return Completion([Candidate(f"{lead}{name}", help_) for name, help_ in found])


def _formats(place: CursorPosition, _names: Names) -> Completion:
    """The formats of ``-o``, by the table of answers; of an answer that has none there, those of the metavar."""
    from kpreempt.report.answers import TEMPLATE_FORMATS, format_names

    request: type[Request] = getattr(place.command.callback, "request", Request)
    formats = list(format_names(request.answer)) if request.answer else [_metavar(place).partition("[")[0]]
    if "json" in formats:
        formats += [f"{name}=" for name in TEMPLATE_FORMATS]
    found = [each for each in formats if each.startswith(place.prefix)]
    # A template follows its format without a space.
    has_template = bool(found) and all(each.endswith("=") for each in found)
    return Completion([Candidate(each) for each in found], NO_FILES | NO_SPACE if has_template else NO_FILES)


def _feature_gates(place: CursorPosition, _names: Names) -> Completion:
    """``Gate=true`` after any number of others and commas, of the gates that the version that is asked lets one set."""
    earlier, comma, last = place.prefix.rpartition(",")
    gate, equals, _ = last.partition("=")
    if equals:
        return Completion([Candidate(f"{earlier}{comma}{gate}={value}") for value in ("true", "false")])
    set_already = {each.partition("=")[0].strip() for each in earlier.split(",")}
    gates = [
        Candidate(f"{earlier}{comma}{name}=", stage)
        for name, stage in sorted(_gates_before(place).items())
        if name not in set_already
    ]
    return Completion(gates, NO_FILES | NO_SPACE)


def _gates_before(place: CursorPosition) -> dict[str, str]:
    """The gates of the version that ``--algorithm`` names, or an upgrade ends with; of the newest for a cluster's own.

    Each with its stage, and without those that are locked. Old versions tell no stages.
    """
    from kpreempt.schedulers.kube.versions import known_gates, version_of

    target = place.options.get("--upgrade-to", [""])[-1].removeprefix("v")
    named = f"{PREFIX}{target}" if target else place.options.get("--algorithm", [""])[-1]
    version = version_of(named)
    if version is None and named in ALGORITHMS:
        from kpreempt.schedulers.legacy.base.gate_names import GATES_BY_ALGORITHM

        return dict.fromkeys(GATES_BY_ALGORITHM[named], "")
    return {
        name: each.stage if each.stage == "alpha" else f"{each.stage}, {_ON[each.default]}"
        for name, each in known_gates(version or LATEST_VERSION).items()
        if each.stage != "locked"
    }


def _algorithm(place: CursorPosition, _names: Names) -> Completion:
    """What the option says that there is, every version on its own."""
    several = {
        KUBE_RANGE: KUBE_ALGORITHMS,
        "kube-VERSION": [each for each in ALL_ALGORITHMS if each.startswith("kube-")],
    }
    named = [several.get(each, (each,)) for each in _metavar(place).split("|")]
    return Completion([Candidate(name, _AUTO.get(name, "")) for names in named for name in names])


def _scheduler_configs(place: CursorPosition, _names: Names) -> Completion:
    """The configurations that come with kpreempt, and files."""
    from kpreempt.cli.scheduler_configs import SHIPPED

    files = _by_metavar(place)
    return Completion([Candidate(name, words) for name, words in SHIPPED.items()], files.directive)


def _actions(place: CursorPosition, _names: Names) -> Completion:
    """One of Volcano's actions after any number of others and commas."""
    from kpreempt.schedulers.volcano.configuration import ACTIONS

    return _one_more(place, ACTIONS)


def _rules(place: CursorPosition, _names: Names) -> Completion:
    """The rules of a gate, with those of the ``kpreempt.toml`` that counts."""
    return Completion([Candidate(name, words) for name, words in _gate_rules(place).items()])


def _severities(place: CursorPosition, _names: Names) -> Completion:
    """The rules of a gate, each with what it may count for."""
    from kpreempt.gate_rules import OptionType, RuleId, RuleSeverity

    unknowns = {rule for rule in RuleId if rule.row.takes is OptionType.NOTHING}
    return Completion(
        [
            Candidate(f"{rule}={severity}")
            for rule in _gate_rules(place)
            for severity in RuleSeverity
            if severity is not RuleSeverity.OFF or rule not in unknowns
        ]
    )


def _kinds(_place: CursorPosition, _names: Names) -> Completion:
    """The kinds that an answer may lack, as kubectl names them."""
    from kpreempt.model.cluster import SHORT_NAMES

    return Completion([Candidate(word, kind) for kind, word in SHORT_NAMES.items()])


def _gate_rules(place: CursorPosition) -> dict[str, str]:
    """The names of all rules, each with what it promises; a file that is wrong has none of its own."""
    from kpreempt.errors import KpreemptError
    from kpreempt.gate_rules import RuleId

    found = {str(rule): rule.row.promise for rule in RuleId}
    try:
        from kpreempt.library.gate.settings import read_config

        rules = read_config(place.options.get("--config", [""])[-1])[1].rules
    except KpreemptError:
        return found
    return found | {str(each.rule): each.rule.row.promise for each in rules}


def _one_more(place: CursorPosition, values: Iterable[str]) -> Completion:
    """The values that are not in the list before the last comma."""
    earlier, comma, _ = place.prefix.rpartition(",")
    named = earlier.split(",")
    return Completion([Candidate(f"{earlier}{comma}{value}") for value in values if value not in named])


_SOURCES: dict[str, _Source] = {
    "--actions": _actions,
    "--algorithm": _algorithm,
    # A name after any number of others and commas.
    "--algorithms": lambda place, _names: _one_more(place, ("auto", *ALL_ALGORITHMS)),
    "--scheduler-config": _scheduler_configs,
    "--upgrade-to": _words({minor: f"v{release}" for minor, release in RELEASES.items()}),
    "--namespace": _of_kind("namespaces"),
    "--node": _of_kind("nodes"),
    "--cordon": _of_kind("nodes"),
    "--uncordon": _of_kind("nodes"),
    "--add-node": _of_kind("nodes"),
    "--remove-node": _of_kind("nodes"),
    "--priority-class": _of_kind("priorityclasses"),
    "--context": _in_kubeconfig("contexts"),
    "--cluster": _in_kubeconfig("clusters"),
    "--user": _in_kubeconfig("users"),
    "--output": _formats,
    "--color": _words(_COLORS),
    "--preemption-policy": _words(_POLICIES),
    "--feature-gates": _feature_gates,
    "--severity": _severities,
    "--assume-none": _kinds,
    "--waive": _rules,
    "--forbid-victims": lambda _place, _names: Completion(
        [Candidate(each) for each in ("namespace=", "label=", "priority-class=")], NO_FILES | NO_SPACE
    ),
}
