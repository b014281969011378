"""Calls: their arguments, what they do, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from kpreempt.cel import CompileError
from kpreempt.cel.evaluation import Evaluate, State
from kpreempt.cel.functions import FUNCTIONS, Cost, Function, Implementation, Overload, no_such_overload
from kpreempt.cel.libraries.operators import equality_cost, inequality_cost, not_strictly_false
from kpreempt.cel.regex import RegexError, compile_regex
from kpreempt.cel.syntax import Call
from kpreempt.cel.values import ABSENT, NO_SUCH_OVERLOAD, Failure, OptionalValue, Value, equal


def logic(terms: list[Evaluate], *, decisive: bool) -> Evaluate:
    """``&&`` and ``||``: one term may decide, whatever the others are; else the first error is the result."""

    def run(state: State) -> Value:
        failure: Failure | None = None
        for term in terms:
            value = term(state)
            if value is decisive:
                return decisive
            if failure is None and type(value) is not bool:
                failure = value if type(value) is Failure else NO_SUCH_OVERLOAD
        return not decisive if failure is None else failure

    return run


def _equality(left: Evaluate, right: Evaluate) -> Evaluate:
    return _compared(left, right, equality_cost, lambda same: same)


def _inequality(left: Evaluate, right: Evaluate) -> Evaluate:
    return _compared(left, right, inequality_cost, lambda same: same is not True)


def _compared(left: Evaluate, right: Evaluate, cost: Cost, result: Callable[[Value], Value]) -> Evaluate:
    def run(state: State) -> Value:
        args = left(state), right(state)
        state.cost += cost(args, None)
        for arg in args:
            if type(arg) is Failure:
                return arg
        # What is nested in only one of them is not walked.
        state.weigh(args[:1], walks=type(args[0]) is type(args[1]))
        return result(equal(*args))

    return run


def _not_false(value_run: Evaluate) -> Evaluate:
    def run(state: State) -> Value:
        state.cost += 1
        return not_strictly_false(value_run(state))

    return run


def _or_value(optional_run: Evaluate, other: Evaluate) -> Evaluate:
    def run(state: State) -> Value:
        optional = optional_run(state)
        if type(optional) is not OptionalValue:
            return optional
        return other(state) if optional.value is ABSENT else optional.value

    return run


def _or(optional_run: Evaluate, other: Evaluate) -> Evaluate:
    def run(state: State) -> Value:
        optional = optional_run(state)
        return other(state) if type(optional) is OptionalValue and optional.value is ABSENT else optional

    return run


# Calls that look at their arguments themselves.
LAZY_CALLS: dict[str, Callable[..., Evaluate]] = {
    "_==_": _equality,
    "_!=_": _inequality,
    "@not_strictly_false": _not_false,
    "or": _or,
    "orValue": _or_value,
}
# Calls whose second argument is a regular expression.
PATTERNS = frozenset({"matches", "find", "findAll"})
# What a call costs by its result, which therefore has to be there.
_BY_RESULT = frozenset({"join", "slice", "lists.range", "reverse"})
# Functions that walk through all of their arguments, at all depths.
_WALKING = frozenset(
    [
        "format",
        "optional.unwrap",
        "unwrapOpt",
        "flatten",
        "distinct",
        "indexOf",
        "lastIndexOf",
        "sets.contains",
        "sets.equivalent",
        "sets.intersects",
        "@in",
    ]
)


def ordinary(node: Call, args: list[Evaluate]) -> Evaluate:
    """A call whose arguments are evaluated first."""
    function = FUNCTIONS[node.function]
    overload = node.overloads[0] if len(node.overloads) == 1 else None
    cost = (overload.cost if overload else None) or function.cost
    early = len(args) > 2 or (overload.early if overload else function.operator is None)
    return _call(node.function, args, _implementation(function, overload), cost, early=early)


def _implementation(function: Function, overload: Overload | None) -> Implementation:
    if function.operator is not None:
        return function.operator
    if overload is None:
        return function.dispatch
    if overload.unguarded:
        return overload.run

    def guarded(*args: Value) -> Value:
        return overload.run(*args) if overload.accepts(args) else no_such_overload(function.name, args)

    return guarded


def pattern_call(node: Call, args: list[Evaluate], pattern: str) -> Evaluate:
    """A call with a constant regular expression, which is compiled before."""
    try:
        compile_regex(pattern)
    except RegexError as error:
        raise CompileError(f"program instantiation failed: {error}") from None
    function = FUNCTIONS[node.function]
    overload = node.overloads[0] if len(node.overloads) == 1 else None
    wanted = (str, str, int)[: len(args)]
    method = function.operator or next(each.run for each in function.overloads if len(each.params) == len(args))

    def run(*values: Value) -> Value:
        return method(*values) if tuple(map(type, values)) == wanted else NO_SUCH_OVERLOAD

    return _call(node.function, args, run, (overload.cost if overload else None) or function.cost, early=True)


def _call(name: str, args: list[Evaluate], method: Implementation, cost: Cost | None, *, early: bool) -> Evaluate:
    walks, by_result, is_sum = name in _WALKING, name in _BY_RESULT, name == "_+_"
    is_pattern = name in PATTERNS
    last = len(args) - 1

    def run(state: State) -> Value:
        values = []
        failure: Failure | None = None
        for index, arg in enumerate(args):
            value = arg(state)
            if type(value) is Failure:
                if early and index < last:
                    # cel-go finds no costs for a call that lacks arguments.
                    return value
                failure = failure or value
            values.append(value)
        if not by_result:
            _charge(state, cost, values, None)
        if failure is None:
            if is_sum:
                state.weigh_sum(values)
            else:
                state.weigh(values, walks=walks)
            result = method(*values)
            if is_pattern and type(values[1]) is str:
                state.weigh_search(values[1])
        else:
            result = failure
        if by_result:
            _charge(state, cost, values, result)
        return result

    return run


def _charge(state: State, cost: Cost | None, values: Sequence[Value], result: Value) -> None:
    if cost is None:
        state.cost += 1
        return
    state.cost += cost(values, result)
    # What costs much is not begun where it is too much.
    state.check()
