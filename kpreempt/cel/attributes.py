"""Variables with their selections, evaluated as one step like cel-go v0.26.0 ``interpreter/attributes.go``.

Each selection costs one, and the complete attribute one more; selections after a missing value cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from kpreempt.cel.evaluation import Evaluate, State, bad_key, lookup, missing, native
from kpreempt.cel.values import (
    ABSENT,
    EMPTY_MAP,
    MAPS,
    NO_SUCH_OVERLOAD,
    NONE,
    Accumulator,
    DefaultMap,
    Document,
    Failure,
    List,
    Map,
    Opaque,
    OptionalValue,
    Value,
)

# A variable that is bound but not yet evaluated.
UNSET = object()


@dataclass(slots=True, eq=False)
class Selection:
    """A selection ``.key`` or ``[key]``, optionally with a question mark; ``test`` only checks for presence."""

    key: Value
    dynamic: Evaluate | None
    optional: bool
    test: bool = False

    def get(self, state: State, container: Value) -> Value:
        """Return the selected value, or a failure."""
        state.cost += 1
        key = self._key(state)
        if type(key) is Failure:
            return key
        found = lookup(container, key)
        if self.test:
            return found if type(found) is Failure else found is not ABSENT
        return missing(container, key) if found is ABSENT else found

    def find(self, state: State, container: Value) -> Value:
        """Return the selected value, or ``ABSENT``, which costs nothing."""
        key = self._key(state)
        found = key if type(key) is Failure else lookup(container, key)
        if found is not ABSENT and type(found) is not Failure:
            state.cost += 1
        return found

    def _key(self, state: State) -> Value:
        if self.dynamic is None:
            return self.key
        key = self.dynamic(state)
        return key if type(key) is Failure else bad_key(key) or key


class Attribute(Protocol):
    """A value that supports selections."""

    # The evaluation cost without selections.
    cost: int

    def add(self, selection: Selection) -> None: ...

    def resolve(self) -> Evaluate:
        """Return the value, without ``cost``."""
        ...


class Chain:
    """A value followed by selections."""

    cost = 1

    def __init__(self, base: Evaluate) -> None:
        self._base = base
        self._selections: list[Selection] = []

    def add(self, selection: Selection) -> None:
        self._selections.append(selection)

    def resolve(self) -> Evaluate:
        selections = tuple(self._selections)
        base = self._base
        if not selections:

            def alone(state: State) -> Value:
                value = base(state)
                if type(value) is OptionalValue and isinstance(value.value, Opaque):
                    return OptionalValue(native(value.value))
                return value

            return alone
        general = _from(selections)
        if any(type(each.key) is not str or each.dynamic or each.optional or each.test for each in selections):
            return lambda state: general(state, base(state))
        # The common case: names in maps.
        keys = tuple(each.key for each in selections)
        count = len(keys)

        def run(state: State) -> Value:
            value = first = base(state)
            for key in keys:
                if type(value) is Document or type(value) is Map:
                    value = value.entries.get(key, ABSENT)
                elif type(value) is DefaultMap:
                    value = value.entries.get(key, EMPTY_MAP)
                else:
                    value = ABSENT
                if value is ABSENT:
                    return general(state, first)
            state.cost += count
            return value

        return run


def _from(selections: tuple[Selection, ...]) -> Callable[[State, Value], Value]:
    """Return a function that applies the selections to a value."""

    def run_from(state: State, value: Value) -> Value:
        if type(value) is Failure:
            return value
        optional = type(value) is OptionalValue
        if optional:
            if value.value is ABSENT:
                return value
            value = native(value.value)
            if type(value) is Failure:
                return value
        for selection in selections:
            optional = optional or selection.optional
            value = selection.find(state, value) if optional else selection.get(state, value)
            if value is ABSENT:
                return NONE
            if type(value) is Failure:
                return value
        return OptionalValue(value) if optional else value

    return run_from


@dataclass(eq=False)
class Conditional:
    """``a ? b : c``: selections apply to ``b`` or ``c``."""

    condition: Evaluate
    yes: Attribute
    no: Attribute
    cost: int = 0

    def add(self, selection: Selection) -> None:
        self.yes.add(selection)
        self.no.add(selection)

    def resolve(self) -> Evaluate:
        condition, yes, no = self.condition, self.yes.resolve(), self.no.resolve()

        def run(state: State) -> Value:
            value = condition(state)
            if value is True:
                return yes(state)
            if value is False:
                return no(state)
            return value if type(value) is Failure else NO_SUCH_OVERLOAD

        return run


def variable(slot: int) -> Evaluate:
    """Return a variable that is set before it is used."""
    return lambda state: state.slots[slot]


def bound(slot: int, initial: Evaluate) -> Evaluate:
    """Return a variable that is evaluated on first use."""

    def run(state: State) -> Value:
        value = state.slots[slot]
        if value is UNSET:
            value = initial(state)
            # Like in cel-go, an empty list with a name grows in place when elements are added.
            if type(value) is List and not value:
                value = Accumulator()
            elif type(value) in MAPS and not len(value):
                value = Map()
            state.slots[slot] = value
        return value

    return run
