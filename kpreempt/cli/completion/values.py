"""The candidates for each option and argument, by name: an option means the same in every command.

First, the last word of the command line is classified: a command, an option, or the value of an option or argument.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, Protocol

from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from kpreempt.cli.command_line import complete_help
from kpreempt.cli.requests import COMMANDS
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
    """A position on the command line.

    ``prefix`` is what has been typed of the current word. ``parameter`` is the option or argument whose value it is, or
    ``None`` for an option (``prefix`` starts with a dash) or a command. ``options`` has the values of the preceding
    options by their long names (an empty string for a flag), ``arguments`` the words that are not options.
    """

    command: Command
    parameter: TyperOption | TyperArgument | None
    prefix: str
    options: dict[str, list[str]]
    arguments: list[str]


def long_name(option: TyperOption) -> str:
    """Return the option's longest name."""
    return max(option.opts, key=len)


class _Reading:
    """Parses a command line up to some word."""

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
            elif option is not None and (equals or _takes_no_value(option)):
                self._give(option, value)
            else:
                self._waits_for_value = option

    def place(self, prefix: str) -> CursorPosition:
        option = self._waits_for_value
        if option is None and prefix.startswith("-") and not self._has_only_arguments:
            # The value may be in the same word, as in ``--namespace=sh``.
            name, equals, value = prefix.partition("=")
            found = self._options_of.get(name)
            if equals and prefix.startswith("--") and found is not None and not _takes_no_value(found):
                option, prefix = found, value
        parameter: TyperOption | TyperArgument | None = option
        if parameter is None and not (prefix.startswith("-") and not self._has_only_arguments):
            arguments = [each for each in self._command.params if isinstance(each, TyperArgument)]
            last = arguments[-1] if arguments and arguments[-1].nargs == -1 else None
            parameter = next(iter(arguments[len(self._arguments) :]), last)
        return CursorPosition(self._command, parameter, prefix, self._given, self._arguments)

    def _read_letters(self, letters: str) -> None:
        """Read single-letter options written as one word, the last perhaps with its value: ``-vnshop``."""
        for index, letter in enumerate(letters):
            option = self._options_of.get(f"-{letter}")
            if option is None:
                return
            if not _takes_no_value(option):
                if rest := letters[index + 1 :]:
                    self._give(option, rest.removeprefix("="))
                else:
                    self._waits_for_value = option
                return
            self._give(option, "")

    def _give(self, option: TyperOption, value: str) -> None:
        self._given.setdefault(long_name(option), []).append(value)


def _options_of(command: Command) -> dict[str, TyperOption]:
    """Return the options by their names; before a command, options of all commands are allowed."""
    if isinstance(command, TyperGroup):
        commands = [each for each in command.commands.values() if isinstance(each, Command)]
        return {name: option for each in commands for name, option in _options_of(each).items()}
    return {name: each for each in command.params if isinstance(each, TyperOption) for name in each.opts}


def _takes_no_value(option: TyperOption) -> bool:
    """Return whether the option has no value: a flag, or an option that is counted."""
    return bool(option.is_flag or option.count)


# Directives for the shell, numbered as in cobra: bits of one number.
DEFAULT = 0
NO_SPACE = 2
NO_FILES = 4

# Short names of kinds, with their plurals.
_PODS = {"pod": "pods"}
_REMOVABLE = {**_PODS, "node": "nodes", "pdb": "poddisruptionbudgets", "resourceclaim": "resourceclaims"}
_RECORDED = {**_PODS, "node": "nodes", "pdb": "poddisruptionbudgets"}
_FILE_METAVARS = ("FILE", "PATH", "DIR")
_POLICIES = {"PreemptLowerPriority": "preempts pods of lower priority", "Never": "waits for free capacity"}
_AUTO = {"auto": "the cluster's own version"}
_ON = {True: "on", False: "off"}
_COLORS = {"auto": "on a terminal, unless NO_COLOR is set", "always": "", "never": ""}


class Candidate(NamedTuple):
    """A possible completion of the word, with a short description."""

    value: str
    help: str = ""


class Completion(NamedTuple):
    """The candidates in display order, and the directives for the shell."""

    candidates: Sequence[Candidate]
    directive: int = NO_FILES


class Names(Protocol):
    """Names that only a cluster or a kubeconfig knows; empty if they are not available in time."""

    def of_kind(self, plural: str, place: CursorPosition) -> Sequence[Candidate]:
        """List objects of a kind by its plural, such as ``pods`` or ``poddisruptionbudgets``; empty for other kinds."""

    def in_kubeconfig(self, section: str, place: CursorPosition) -> Sequence[Candidate]:
        """List the entries of a section of the kubeconfig: ``contexts``, ``clusters`` or ``users``."""


_Source = Callable[[CursorPosition, Names], Completion]


def complete(root: Command, words: Sequence[str], names: Names) -> Completion:
    """Complete the last of ``words``."""
    # Classify the last of ``words``; those before it are complete, whether or not they make sense.
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
        source = _ARGUMENTS.get(place.command.name or "", _BY_METAVAR.get(_metavar(place)))
        found = source(place, names) if source else _by_metavar(place)
    elif place.prefix.startswith("-"):
        found = Completion(_options(place))
    else:
        found = Completion(_commands(place))
    candidates = [each for each in found.candidates if each.value.startswith(place.prefix)]
    # A name follows a kind or a namespace without a space.
    continues = any(each.value.endswith("/") for each in candidates)
    return Completion(candidates, found.directive | NO_SPACE if continues else found.directive)


def _by_metavar(place: CursorPosition) -> Completion:
    """Complete files for FILE and PATH, the words of ``this|that``, and otherwise nothing."""
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
    return [Candidate(name, COMMANDS[name].summary) for name, each in commands if not each.hidden]


def _options(place: CursorPosition) -> list[Candidate]:
    """List the options that the command still accepts; single-letter names only after a single dash."""
    complete_help(place.command)
    shown = [Candidate("--help", "Show this message and exit")]
    for option in place.command.params:
        if not isinstance(option, TyperOption) or option.hidden:
            continue
        if long_name(option) in place.options and not option.multiple:
            continue
        names = [*option.opts, *option.secondary_opts]
        shown_names = [name for name in names if name.startswith("--") or place.prefix == "-"]
        shown += [Candidate(name, _sentence(option.help)) for name in shown_names]
    return sorted(shown, key=lambda each: each.value.lstrip("-"))


def _sentence(text: str | None) -> str:
    """Return the first sentence of a help text on one line."""
    return " ".join((text or "").split()).partition(". ")[0].rstrip(".")


def _of_kind(plural: str) -> _Source:
    return lambda place, names: Completion(names.of_kind(plural, place))


def _in_kubeconfig(section: str) -> _Source:
    return lambda place, names: Completion(names.in_kubeconfig(section, place))


def _words(help_by_word: dict[str, str]) -> _Source:
    return lambda _place, _names: Completion([Candidate(*item) for item in help_by_word.items()])


def _after(lead: str, found: Iterable[Candidate], end: str = "") -> list[Candidate]:
    """The candidates after what has been typed before them."""
    return [Candidate(f"{lead}{name}{end}", help_) for name, help_ in found]


def _workload_plurals() -> dict[str, str]:
    """The short names of pods and workloads, with their plurals."""
    from kpreempt.analysis.workload_pods import WORKLOAD_KINDS

    others = (names for kind, names in WORKLOAD_KINDS.items() if kind not in ("Pod", "PodTemplate"))
    return {**_PODS, **{names[0]: names[-1] for names in others}}


def _named(plurals_of: Callable[[], dict[str, str]]) -> _Source:
    """Complete names after their kind, in one word (``deploy/web``) or two; pods also without a kind.

    ``plurals_of`` returns the plural of each kind that is offered. Pods may also follow their namespace.
    """

    def source(place: CursorPosition, names: Names) -> Completion:
        """Complete a kind, or a name after its kind."""
        if place.arguments and _is_second_word(place):
            return Completion(names.of_kind(_plural(place.arguments[0]) or "", place))
        kind, slash, _ = place.prefix.partition("/")
        if not slash:
            # Without any letter, pods are what is most likely meant.
            kinds = [Candidate(f"{each}/") for each in plurals_of()] if place.prefix else []
            return Completion([*kinds, *names.of_kind("pods", place)])
        plural = _plural(kind)
        if plural is None:
            return Completion(_after(f"{kind}/", names.of_kind("pods", _in_namespace(place, kind))))
        return Completion(_after(f"{kind}/", names.of_kind(plural, place)))

    def _plural(word: str) -> str | None:
        """The plural of a kind, which is empty if the kind is not offered; ``None`` for a namespace."""
        from kpreempt.analysis.workload_pods import WORKLOAD_KINDS, kind_of

        plurals = plurals_of()
        if word in plurals or not kind_of(word):
            return plurals.get(word)
        # The last of a kind's names is the plural.
        found = WORKLOAD_KINDS[kind_of(word)][-1]
        return found if found in plurals.values() else ""

    return source


def _is_second_word(place: CursorPosition) -> bool:
    return isinstance(place.parameter, TyperArgument) and place.parameter.name == "name"


def _in_namespace(place: CursorPosition, namespace: str) -> CursorPosition:
    return place._replace(options={**place.options, "--namespace": [namespace]})


def _namespaced(plural: str, end: str = "") -> _Source:
    """Complete ``NS/NAME``: first the namespace, then the name, and then ``end``."""

    def source(place: CursorPosition, names: Names) -> Completion:
        """Complete a namespace, or a name after it."""
        namespace, slash, _ = place.prefix.partition("/")
        if not slash:
            return Completion(_after("", names.of_kind("namespaces", place), "/"))
        found = names.of_kind(plural, _in_namespace(place, namespace))
        return Completion(_after(f"{namespace}/", found, end), NO_FILES | NO_SPACE if end else NO_FILES)

    return source


def _removable(place: CursorPosition, names: Names) -> Completion:
    """Complete an object to remove: ``KIND/[NS/]NAME``."""
    kind, slash, rest = place.prefix.partition("/")
    plural = _REMOVABLE.get(kind, "") if slash else ""
    if not plural:
        return Completion([Candidate(f"{each}/") for each in _REMOVABLE])
    if plural == "nodes":
        return Completion(_after(f"{kind}/", names.of_kind(plural, place)))
    found = _namespaced(plural)(place._replace(prefix=rest), names)
    own = names.of_kind(plural, place) if "/" not in rest else []
    return Completion(_after(f"{kind}/", [*own, *found.candidates]))


def _nodes(place: CursorPosition, names: Names) -> Completion:
    """Complete one more node."""
    return Completion([each for each in names.of_kind("nodes", place) if each.value not in place.arguments])


def _node_edits(separator: str, values: Callable[[str], Iterable[str]]) -> _Source:
    """Complete a node, a separator and then what ``values`` offers for the rest that has been typed."""

    def source(place: CursorPosition, names: Names) -> Completion:
        """Complete a node, or what follows it."""
        node, found, rest = place.prefix.partition(separator)
        if not found:
            return Completion(_after("", names.of_kind("nodes", place), separator), NO_FILES | NO_SPACE)
        offered = _after(f"{node}{separator}", map(Candidate, values(rest)))
        continues = any(each.value.endswith("=") for each in offered if each.value.startswith(place.prefix))
        return Completion(offered, NO_FILES | NO_SPACE if continues else NO_FILES)

    return source


def _effects(rest: str) -> list[str]:
    """Offer the effects of a taint after its key and value, to be added or removed."""
    from kpreempt.model.taints import TAINT_EFFECTS

    taint, colon, _ = rest.rpartition(":")
    endings = ("",) if "=" in taint else ("", "-")
    return [f"{taint}:{each}{end}" for each in TAINT_EFFECTS for end in endings] if colon else []


_SETTABLE = (
    *("spec.unschedulable=true", "spec.unschedulable=false"),
    *(f"status.allocatable.{name}=" for name in ("cpu", "memory", "pods", "ephemeral-storage", "nvidia.com/gpu")),
)


def _formats(place: CursorPosition, _names: Names) -> Completion:
    """Complete the formats of ``-o`` from the table of answers, or from the metavar of other answers."""
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
    """Complete ``Gate=true`` after a comma-separated list, with the gates that the selected version can set."""
    earlier, comma, last = place.prefix.rpartition(",")
    gate, equals, _ = last.partition("=")
    if equals:
        return Completion([Candidate(f"{earlier}{comma}{gate}={value}") for value in ("true", "false")])
    set_already = {each.partition("=")[0].strip() for each in earlier.split(",")}
    gates = [
        Candidate(f"{earlier}{comma}{name}=", stage)
        for name, stage in sorted(_gates_of_version(place).items())
        if name not in set_already
    ]
    return Completion(gates, NO_FILES | NO_SPACE)


def _gates_of_version(place: CursorPosition) -> dict[str, str]:
    """Return the gates of the version that ``--algorithm`` names or an upgrade ends with; by default, of the latest.

    Each comes with its stage; locked gates are left out. Old versions have no stages.
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
    """Complete the option's algorithms, listing every version separately."""
    several = {
        KUBE_RANGE: KUBE_ALGORITHMS,
        "kube-VERSION": [each for each in ALL_ALGORITHMS if each.startswith("kube-")],
    }
    named = [several.get(each, (each,)) for each in _metavar(place).split("|")]
    return Completion([Candidate(name, _AUTO.get(name, "")) for names in named for name in names])


def _scheduler_configs(place: CursorPosition, _names: Names) -> Completion:
    """Complete the configurations that come with kpreempt, and files."""
    from kpreempt.cli.scheduler_configs import SHIPPED

    files = _by_metavar(place)
    return Completion([Candidate(name, words) for name, words in SHIPPED.items()], files.directive)


def _actions(place: CursorPosition, _names: Names) -> Completion:
    """Complete one of Volcano's actions after a comma-separated list."""
    from kpreempt.schedulers.volcano.configuration import ACTIONS

    return _one_more(place, ACTIONS)


def _rules(place: CursorPosition, _names: Names) -> Completion:
    """Complete the rules of a gate, including those in ``kpreempt.toml``."""
    return Completion([Candidate(name, words) for name, words in _gate_rules(place).items()])


def _severities(place: CursorPosition, _names: Names) -> Completion:
    """Complete the rules of a gate, each with its possible severities."""
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
    """Complete the kinds that an answer may lack, under the names that kubectl uses."""
    from kpreempt.model.cluster import SHORT_NAMES

    return Completion([Candidate(word, kind) for kind, word in SHORT_NAMES.items()])


def _gate_rules(place: CursorPosition) -> dict[str, str]:
    """Return the names of all rules with what each promises; an invalid file adds none."""
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
    """Complete values that are not yet in the list before the last comma."""
    earlier, comma, _ = place.prefix.rpartition(",")
    named = earlier.split(",")
    return Completion([Candidate(f"{earlier}{comma}{value}") for value in values if value not in named])


_SOURCES: dict[str, _Source] = {
    "--actions": _actions,
    "--algorithm": _algorithm,
    # A name after a comma-separated list.
    "--algorithms": lambda place, _names: _one_more(place, ("auto", *ALL_ALGORITHMS)),
    "--scheduler-config": _scheduler_configs,
    "--upgrade-to": _words({minor: f"v{release}" for minor, release in RELEASES.items()}),
    "--namespace": _of_kind("namespaces"),
    "--label-node": _node_edits("=", lambda _rest: ()),
    "--taint-node": _node_edits("=", _effects),
    "--set-node": _node_edits(":", lambda _rest: _SETTABLE),
    "--budget": _namespaced("poddisruptionbudgets", "="),
    "--without": _removable,
    "--delete": _named(_workload_plurals),
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
# Arguments, by command, and by what they are called in the help.
_ARGUMENTS: dict[str, _Source] = {"rules": _rules, "history": _named(lambda: _RECORDED)}
_BY_METAVAR: dict[str, _Source] = {
    "[KIND/]NAME": _named(_workload_plurals),
    "NAME": _named(_workload_plurals),
    "[pod/]NAME": _named(lambda: _PODS),
    "NODE": _nodes,
}
