"""Loops over lists and maps, as in cel-go v0.26.0 ``interpreter/interpretable.go``."""

from __future__ import annotations

from kpreempt.cel.attributes import UNSET
from kpreempt.cel.evaluation import Evaluate, State, settled
from kpreempt.cel.values import LISTS, MAPS, Failure, Value, go_name


def fold(
    over: Evaluate,
    slots: tuple[int, int, int],
    condition: Evaluate,
    step: Evaluate,
    result: Evaluate,
    *,
    two: bool,
    collects: bool,
) -> Evaluate:
    """``slots`` are those of what is carried along, and of one or ``two`` variables; what ``collects`` makes a list."""
    carried, first, second = slots

    def run(state: State) -> Value:
        items = over(state)
        if type(items) is Failure:
            return items
        variables = state.slots
        variables[carried] = UNSET
        if type(items) in LISTS:
            # Elements that the loop itself adds are not walked.
            pairs = enumerate(items[: len(items)])
        elif type(items) in MAPS:
            pairs = items.items()
            state.by_chance = state.by_chance or (collects and len(items) > 1)
        elif two:
            return Failure(f"unsupported comprehension range type: {go_name(items)}")
        else:
            return Failure(f"got '{go_name(items)}', expected iterable type")
        by_key = two or type(items) in MAPS
        for key, value in pairs:
            variables[first] = key if by_key else value
            variables[second] = value
            if condition(state) is False:
                break
            variables[carried] = step(state)
            state.check()
        return settled(result(state))

    return run
