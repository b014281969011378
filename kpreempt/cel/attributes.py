"""Variables with what is selected from them, which is one step, as in cel-go v0.26.0 ``interpreter/attributes.go``.

Each selection costs one, and the whole another; where something is missing, those after it cost nothing.
"""

from __future__ import annotations

from collections.abc import Callable
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

# A variable that is bound and was not used yet.
UNSET = object()


class Selection:
    """``.key``, ``[key]``, or with a question mark; ``test`` asks only whether there is something."""

    __slots__ = ("dynamic", "key", "optional", "test")

    def __init__(self, key: Value, dynamic: Evaluate | None, *, optional: bool, test: bool = False) -> None:
        self.key = key
        self.dynamic = dynamic
        self.optional = optional
        self.test = test

    def get(self, state: State, container: Value) -> Value:
        """What is there, or a failure."""
        state.cost += 1
        key = self._key(state)
        if type(key) is Failure:
            return key
        found = lookup(container, key)
        if self.test:
            return found if type(found) is Failure else found is not ABSENT
        return missing(container, key) if found is ABSENT else found

    def find(self, state: State, container: Value) -> Value:
        """What is there, or ``ABSENT``, which costs nothing."""
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
    """Something to select from."""

    # What evaluating it costs besides its selections.
    cost: int

    def add(self, selection: Selection) -> None: ...

    def resolve(self) -> Evaluate:
        """The value, without ``cost``."""
        ...


class Chain:
    """A value and selections from it."""

    cost = 1

    def __init__(self, base: Evaluate) -> None:
        self._base = base
        self._selections: list[Selection] = []

    def add(self, selection: Selection) -> None:
        self._selections.append(selection)

    def resolve(self) -> Evaluate:
        selections = tuple(self._selections)
        if not selections:
            return self._alone()
        if all(type(each.key) is str and not (each.dynamic or each.optional or each.test) for each in selections):
            return self._plain(tuple(each.key for each in selections))
        return self._selected(selections)

    def _alone(self) -> Evaluate:
        base = self._base

        def run(state: State) -> Value:
            value = base(state)
            if type(value) is OptionalValue and isinstance(value.value, Opaque):
                return OptionalValue(native(value.value))
            return value

        return run

    def _plain(self, keys: tuple[str, ...]) -> Evaluate:
        """The usual case: names in maps."""
        base = self._base
        general = self._from(tuple(self._selections))
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

    def _selected(self, selections: tuple[Selection, ...]) -> Evaluate:
        base, run_from = self._base, self._from(selections)
        return lambda state: run_from(state, base(state))

    def _from(self, selections: tuple[Selection, ...]) -> Callable[[State, Value], Value]:
        """The selections from a value that is there."""

        def run_from(state: State, value: Value) -> Value:
            if type(value) is Failure:
                return value
            optional = type(value) is OptionalValue
            if optional:
                if value.value is ABSENT:
                    return value
                value = native(value.value)
                if type(value) is Failure and selections:
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


class Conditional:
    """``a ? b : c``: what is selected from it is selected from ``b`` or ``c``."""

    cost = 0

    def __init__(self, condition: Evaluate, yes: Attribute, no: Attribute) -> None:
        self._condition = condition
        self._yes = yes
        self._no = no

    def add(self, selection: Selection) -> None:
        self._yes.add(selection)
        self._no.add(selection)

    def resolve(self) -> Evaluate:
        condition, yes, no = self._condition, self._yes.resolve(), self._no.resolve()

        def run(state: State) -> Value:
            value = condition(state)
            if value is True:
                return yes(state)
            if value is False:
                return no(state)
            return value if type(value) is Failure else NO_SUCH_OVERLOAD

        return run


def variable(slot: int) -> Evaluate:
    """A variable that has its value before it is used."""
    return lambda state: state.slots[slot]


def bound(slot: int, initial: Evaluate) -> Evaluate:
    """A variable that gets its value when it is first used."""

    def run(state: State) -> Value:
        value = state.slots[slot]
        if value is UNSET:
            value = initial(state)
            # As in cel-go, an empty list that has a name grows in place where something is added to it.
            if type(value) is List and not value:
                value = Accumulator()
            elif type(value) in MAPS and not len(value):
                value = Map()
            state.slots[slot] = value
        return value

    return run
