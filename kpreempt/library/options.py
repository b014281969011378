"""Options, each declared once: in the request field that it sets.

These fields define the signature and help of a command, the schema of a tool, the keys of a plan, and the arguments of
the library. Every start loads the requests, so they are plain classes without imports.
"""

from collections.abc import Callable, Iterable, Mapping
from inspect import get_annotations
from types import UnionType
from typing import Any, NamedTuple, Self, dataclass_transform, get_args, get_origin

# The headings of the help, in order.
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
# The families of schedulers; an option can be limited to some of them.
KUBE, VOLCANO, KUEUE = "kube", "volcano", "kueue"
# How a sweep plan accepts an option: a single value, or also a list, which makes one query per value.
ONE, LADDER = "one", "ladder"


class Option(NamedTuple):
    """An option, or an argument if it has no ``names``, in the annotation of the field that it sets.

    ``help`` can be computed from the request when the help is shown. ``panel`` is its heading. Only the listed
    ``families`` of schedulers accept it; if there are none, all do. ``in_tools`` offers it to assistants, up to the
    value ``max_in_tools``, and ``in_plans`` to sweeps. The short help shows those that are ``is_everyday``. Commands
    can change its description with ``_replace``.
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
    is_everyday: bool = False

    @property
    def long_name(self) -> str:
        """The option's longest name."""
        return max(self.names, key=len).partition("/")[0]


class Group(NamedTuple):
    """In a field's annotation: options, annotated like fields, that together form one value.

    ``make`` builds that value. It gets a value for each option, which is ``None`` or false if the option was not given.
    """

    options: Mapping[str, Any]
    make: Callable[[dict[str, Any]], Any]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Request:
    """A request, with a field for each option; other fields hold input that the entry point has already parsed.

    In the help, a class's own fields come before inherited ones. Declaring a field again changes its description or
    default. Inherited fields named in ``without`` are not offered and keep their default.
    """

    # The record type of the answer, in the table of ``kpreempt.report.answers``.
    answer = ""
    # The function of (context, request) that answers: ``MODULE:FUNCTION`` in ``kpreempt.library``.
    answered_by = ""
    # On the command line: the command, and the names of the options that were given.
    command_name: str = ""
    set_options: Iterable[str] = ()
    _left_out: Iterable[str] = ()

    def __init_subclass__(cls, *, without: Iterable[str] = ()) -> None:
        """Exclude inherited fields."""
        cls._left_out = (*cls._left_out, *without)

    def __init__(self, **values: Any) -> None:
        self.__dict__.update(values)

    @property
    def algorithm_named(self) -> str:
        """The requested scheduler, or an empty string."""
        return getattr(self, "algorithm", None) or ""

    def having(self, **values: Any) -> Self:
        """A copy of the request with some values replaced."""
        return type(self)(**{**self.__dict__, **values})


def fields_of(request: type[Request]) -> dict[str, Any]:
    """Collect the annotations of all fields that are options or groups, in the order of the help."""
    found: dict[str, Any] = {}
    for each in request.__mro__:
        if issubclass(each, Request):
            for name, annotation in get_annotations(each).items():
                # Annotations must be evaluated with the class: from __future__ import annotations would keep them text.
                assert not (isinstance(annotation, str) and annotation.startswith("Annotated[")), (
                    f"{each.__name__}.{name}"
                )
                if option_of(annotation) or group_of(annotation):
                    found.setdefault(name, annotation)
    return {name: each for name, each in found.items() if name not in request._left_out}


def options_of(request: type[Request]) -> dict[str, Option]:
    """Collect the options of a request by parameter name, those in groups as well, in the order of the help."""
    found: dict[str, Option] = {}
    for name, annotation in fields_of(request).items():
        group = group_of(annotation)
        for each, declared in (group.options if group else {name: annotation}).items():
            if (option := option_of(declared)) is not None:
                found[each] = option
    return found


def option_of(annotation: Any) -> Option | None:
    """The option in the annotation of a field."""
    return next((each for each in get_args(annotation) if isinstance(each, Option)), None)


def group_of(annotation: Any) -> Group | None:
    """The group of options in the annotation of a field."""
    return next((each for each in get_args(annotation) if isinstance(each, Group)), None)


def kind_of(annotation: Any) -> type:
    """The type of a field, apart from ``None``: ``str``, ``int``, ``bool``, ``float`` or ``list``."""
    declared = get_args(annotation)[0]
    kinds = [each for each in get_args(declared) if each is not type(None)]
    kind: type = declared if isinstance(declared, type) else get_origin(declared) or declared
    if isinstance(declared, UnionType):
        kind = get_origin(kinds[0]) or kinds[0]
    return get_origin(kind) or kind
