"""Options, each declared once: in the field of a request that it sets.

Whatever takes options is made of these fields: the signature of a command and its help, the schema of a tool, the keys
of a plan, and the arguments of the library. Requests are loaded at every start, so they are plain classes, and nothing
is imported for them.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import get_annotations
from types import UnionType
from typing import Any, NamedTuple, Self, dataclass_transform, get_args, get_origin

# The headings of the help, in its order.
PANELS = (
    THE_POD := "The pod",
    THE_CHANGE := "The change",
    QUERIES := "Queries",
    THE_CLUSTER := "The cluster",
    WHAT_IF := "What if",
    THE_DRAIN := "The drain",
    RECORDING := "The recording",
    SIMULATION := "Simulation",
    GATE := "Gate and exit code",
    OUTPUT := "Output",
    WORKERS := "Workers",
    SCHEDULER := "Scheduler",
    CONNECTION := "Connection",
    VOLCANO_PANEL := "Volcano",
)
# The families of schedulers, by which options say who takes them.
KUBE, VOLCANO, KUEUE = "kube", "volcano", "kueue"
# How a plan of a sweep has an option: one value for a question, or also a list, which makes a question of each.
ONE, LADDER = "one", "ladder"


class Option(NamedTuple):
    """An option, or an argument if it has no ``names``; it stands in the annotation of the field that it sets.

    ``help`` may be made of the request, when the help is shown. ``panel`` is its heading. Only the ``families`` of
    schedulers take it, without any all. ``in_tools`` offers it to assistants, who may say at most ``max_in_tools``,
    and ``in_plans`` to sweeps. Other commands may describe it in other words: ``_replace``.
    """

    names: tuple[str, ...] = ()
    help: str | Callable[[type["Request"]], str] = ""
    metavar: str | None = None
    panel: str = OUTPUT
    min: int | None = None
    max: int | None = None
    counts: bool = False
    families: tuple[str, ...] = ()
    in_tools: bool = False
    max_in_tools: int | None = None
    in_plans: str = ""

    @property
    def long_name(self) -> str:
        """The name that goes without abbreviation."""
        return max(self.names, key=len).partition("/")[0]


class Group(NamedTuple):
    """In a field's annotation: the options that make one value, annotated as fields are, and what makes it.

    ``make`` gets a value for each option, which is ``None`` or false where it was not given.
    """

    options: Mapping[str, Any]
    make: Callable[[dict[str, Any]], Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Request:
    """What is asked, in a field for each option; other fields hold what an entry point makes of them.

    The help has a class's own fields before those that it inherits. A field that is declared again has other words or
    another default. Inherited fields that are named by ``without`` are not offered, and keep their default.
    """

    # The record of the answer, in the table of ``kpreempt.report.answers``.
    answer = ""
    # The function of (context, request) that answers: ``MODULE:FUNCTION`` in ``kpreempt.library``.
    answered_by = ""
    # On a command line: the command, and the names of the values that were given.
    command_name: str = ""
    set_options: Iterable[str] = ()
    _left_out: Iterable[str] = ()

    def __init_subclass__(cls, *, without: Iterable[str] = ()) -> None:
        """Leave fields out."""
        cls._left_out = (*cls._left_out, *without)

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @property
    def algorithm_named(self) -> str:
        """The scheduler that is named, if one is."""
        return getattr(self, "algorithm", None) or ""

    def having(self, **values: Any) -> Self:
        """The request with other values."""
        return type(self)(**{**self.__dict__, **values})


def fields_of(request: type[Request]) -> dict[str, Any]:
    """The annotations of all fields that are options, or groups of them, in the order of the help."""
    found: dict[str, Any] = {}
    for each in request.__mro__:
        if issubclass(each, Request):
            for name, annotation in get_annotations(each).items():
                # Evaluated as the class is made: from __future__ import annotations would take them away.
                assert not (isinstance(annotation, str) and annotation.startswith("Annotated[")), (
                    f"{each.__name__}.{name}"
                )
                if option_of(annotation) or group_of(annotation):
                    found.setdefault(name, annotation)
    return {name: each for name, each in found.items() if name not in request._left_out}


def option_of(annotation: Any) -> Option | None:
    """The option in the annotation of a field."""
    return next((each for each in get_args(annotation) if isinstance(each, Option)), None)


def group_of(annotation: Any) -> Group | None:
    """The options in the annotation of a field that make one value."""
    return next((each for each in get_args(annotation) if isinstance(each, Group)), None)


def kind_of(annotation: Any) -> type:
    """Which values a field has beside ``None``: ``str``, ``int``, ``bool``, ``float`` or ``list``."""
    declared = get_args(annotation)[0]
    kinds = [each for each in get_args(declared) if each is not type(None)]
    kind: type = declared if isinstance(declared, type) else get_origin(declared) or declared
    if isinstance(declared, UnionType):
        kind = get_origin(kinds[0]) or kinds[0]
    return get_origin(kind) or kind
