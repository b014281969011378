"""Turn a checked tree into a function that evaluates it and counts its cost: loops, calls and operators.

Follows cel-go v0.26.0 ``interpreter/planner.go``, ``interpretable.go``, ``decorators.go`` and ``runtimecost.go``:
constant parts are evaluated here at no cost, and operators treat errors as they do there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from kpreempt.cel import CompileError
from kpreempt.cel.attributes import UNSET, Attribute, Chain, Conditional, Selection, bound, variable
from kpreempt.cel.checker import TYPE_NAMES
from kpreempt.cel.evaluation import Evaluate, State, bad_key, settled
from kpreempt.cel.functions import FUNCTIONS, Cost, Implementation
from kpreempt.cel.libraries.operators import equality_cost, inequality_cost
from kpreempt.cel.libraries.texts import shown
from kpreempt.cel.regex import RegexError, compile_regex
from kpreempt.cel.syntax import Call, Comprehension, Ident, ListNode, Literal, MapNode, Node, Select
from kpreempt.cel.values import (
    ABSENT,
    LISTS,
    MAPS,
    NO_SUCH_OVERLOAD,
    Failure,
    List,
    Map,
    OptionalValue,
    TypeValue,
    Uint,
    Value,
    equal,
    go_name,
    hashed,
)

_CONVERSIONS = frozenset(["bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"])
_PRIMITIVE = frozenset({bool, int, Uint, float, str})
_LIST_COST, _MAP_COST = 10, 30


class Plan:
    """A part of an expression: a constant, an attribute that supports more selections, or anything else."""

    def __init__(
        self, run: Evaluate | None = None, *, attribute: Attribute | None = None, constant: Value = ABSENT
    ) -> None:
        self.constant = constant
        self.attribute = attribute
        self.test_only = False
        self._run = run

    @property
    def is_constant(self) -> bool:
        return self.constant is not ABSENT

    def evaluate(self) -> Evaluate:
        """Return the function; no more selections are added to this part."""
        if self._run is not None:
            return self._run
        if self.attribute is None:
            value = self.constant
            return lambda _state: value
        resolve, cost = self.attribute.resolve(), self.attribute.cost
        if self.test_only:
            # ``has`` costs one less than its argument, even if that costs nothing.
            def tested(state: State) -> Value:
                state.cost += cost - 1
                value = resolve(state)
                return value.value is not ABSENT if type(value) is OptionalValue else value

            return tested
        if not cost:
            return resolve

        def run(state: State) -> Value:
            state.cost += 1
            return resolve(state)

        return run

    def selectable(self) -> Attribute:
        """Return the part as an attribute that supports selections."""
        return self.attribute if self.attribute is not None else Chain(self.evaluate())


def plan(node: Node, variables: Mapping[str, int]) -> tuple[Evaluate, int]:
    """Plan a checked tree; return the function and its number of slots. ``variables`` are assigned to slots.

    Raises ``CompileError`` if a constant part fails.
    """
    planner = _Planner(variables)
    return planner.plan(node).evaluate(), planner.count


def _instantiated(value: Value) -> Value:
    if type(value) is Failure:
        raise CompileError(f"program instantiation failed: {value.message}")
    return value


class _Planner:
    def __init__(self, variables: Mapping[str, int]) -> None:
        self.scopes: list[dict[str, Evaluate]] = [{name: variable(slot) for name, slot in variables.items()}]
        self.count = len(variables)

    def slot(self) -> int:
        self.count += 1
        return self.count - 1

    def plan(self, node: Node) -> Plan:
        if isinstance(node, Call):
            return self.call(node)
        if isinstance(node, Select):
            return self.select(node)
        if isinstance(node, Literal):
            return Plan(constant=node.value)
        if isinstance(node, Ident):
            return self.ident(node)
        if isinstance(node, ListNode):
            return self.list_literal(node)
        if isinstance(node, MapNode):
            return self.map_literal(node)
        assert isinstance(node, Comprehension)
        return self.comprehension(node)

    def ident(self, node: Ident) -> Plan:
        if node.constant is not None:
            return Plan(constant=TypeValue(node.constant if node.constant in TYPE_NAMES else node.name))
        base = next(scope[node.name] for scope in reversed(self.scopes) if node.name in scope)
        return Plan(attribute=Chain(base))

    def select(self, node: Select) -> Plan:
        if node.resolved is not None:
            return self.ident(node.resolved)
        found = self.selected(node.operand, Selection(node.field, None, optional=False, test=node.test_only))
        found.test_only = node.test_only
        return found

    def selected(self, operand: Node, selection: Selection) -> Plan:
        """Add a selection to the operand; properties of its previous part are unchanged."""
        inner = self.plan(operand)
        attribute = Chain(inner.evaluate()) if inner.test_only else inner.selectable()
        attribute.add(selection)
        return Plan(attribute=attribute)

    def call(self, node: Call) -> Plan:
        name = node.function
        if name in ("_[_]", "_[?_]", "_?._"):
            return self.index(node)
        args = [self.plan(arg) for arg in ([node.target] if node.target is not None else []) + node.args]
        if name == "_?_:_":
            condition, yes, no = args
            return Plan(attribute=Conditional(condition.evaluate(), yes.selectable(), no.selectable()))
        if name in ("_&&_", "_||_"):
            return Plan(logic([arg.evaluate() for arg in args], decisive=name == "_||_"))
        if name in _CONVERSIONS and len(args) == 1 and args[0].is_constant:
            return Plan(constant=self.converted(node, args[0].constant))
        if name == "@in" and args[1].is_constant and (found := self.membership(node, *args)):
            return found
        runs = [arg.evaluate() for arg in args]
        if name in LAZY_CALLS:
            return Plan(LAZY_CALLS[name](*runs))
        if name in PATTERNS and args[1].is_constant and type(args[1].constant) is str:
            return Plan(pattern_call(node, runs, args[1].constant))
        return Plan(ordinary(node, runs))

    def converted(self, node: Call, value: Value) -> Value:
        function = FUNCTIONS[node.function]
        if function.operator is not None:
            return function.operator(value)
        convert = node.overloads[0].guarded if len(node.overloads) == 1 else function.dispatch
        return _instantiated(convert(value))

    def membership(self, node: Call, item: Plan, items: Plan) -> Plan | None:
        """Plan ``in`` for a constant list of simple values as a single lookup."""
        constant = items.constant
        if len(node.overloads) != 1 or type(constant) not in LISTS:
            return None
        if not constant:
            return Plan(constant=False)
        if any(type(element) not in _PRIMITIVE for element in constant):
            return None
        known = {hashed(other) for element in constant for other in _same_numbers(element)}
        run = item.evaluate()

        def contained(state: State) -> Value:
            value = run(state)
            return value if type(value) is Failure else hashed(value) in known

        return Plan(contained)

    def index(self, node: Call) -> Plan:
        operand, at = node.args
        optional = node.function != "_[_]"
        index = self.plan(at)
        if index.is_constant:
            key = index.constant
            _instantiated(bad_key(key))
            return self.selected(operand, Selection(key, None, optional=optional))
        dynamic = index.attribute.resolve() if index.attribute and not index.test_only else index.evaluate()
        return self.selected(operand, Selection(None, dynamic, optional=optional))

    def list_literal(self, node: ListNode) -> Plan:
        elements = [self.plan(element) for element in node.elements]
        if all(element.is_constant for element in elements) and not node.optionals:
            return Plan(constant=List(element.constant for element in elements))
        runs = [(element.evaluate(), index in node.optionals) for index, element in enumerate(elements)]

        def run(state: State) -> Value:
            state.cost += _LIST_COST
            made = []
            for element, optional in runs:
                value = element(state)
                if type(value) is Failure:
                    return value
                if optional:
                    if type(value) is not OptionalValue:
                        what = f"cannot initialize optional list element from non-optional value {shown(value)}"
                        return Failure(what)
                    if value.value is ABSENT:
                        continue
                    value = value.value
                made.append(value)
            return List(made)

        return Plan(run)

    def map_literal(self, node: MapNode) -> Plan:
        entries = [(self.plan(key), self.plan(value), optional) for key, value, optional in node.entries]
        if all(key.is_constant and value.is_constant and not optional for key, value, optional in entries):
            return Plan(constant=Map((key.constant, value.constant) for key, value, _ in entries))
        runs = [(key.evaluate(), value.evaluate(), optional) for key, value, optional in entries]

        def run(state: State) -> Value:
            state.cost += _MAP_COST
            made = Map()
            for key_run, value_run, optional in runs:
                key = key_run(state)
                if type(key) is Failure:
                    return key
                value = value_run(state)
                if type(value) is Failure:
                    return value
                if optional:
                    if type(value) is not OptionalValue:
                        what = f"entry '{shown(key)}' from non-optional value {shown(value)}"
                        return Failure(f"cannot initialize optional {what}")
                    if value.value is ABSENT:
                        made.drop(key)
                        continue
                    value = value.value
                made.put(key, value)
            return made

        return Plan(run)

    def comprehension(self, node: Comprehension) -> Plan:
        initial = self.plan(node.initial)
        over = self.plan(node.range)
        slot, first, second = self.slot(), self.slot(), self.slot()
        if over.is_constant and not over.constant and not initial.is_constant:
            # No elements are visited: the result holds the variable.
            self.scopes.append({node.accumulator: bound(slot, initial.evaluate())})
            result = self.plan(node.result).evaluate()
            self.scopes.pop()

            def run(state: State) -> Value:
                state.slots[slot] = UNSET
                return result(state)

            return Plan(run)
        start = bound(slot, initial.evaluate())
        self.scopes.append({node.accumulator: start})
        self.scopes.append({node.variables[0]: variable(first), node.variables[1] or "#": variable(second)})
        condition, step = self.plan(node.condition).evaluate(), self.plan(node.step).evaluate()
        self.scopes.pop()
        result = self.plan(node.result).evaluate()
        self.scopes.pop()
        return Plan(
            fold(
                over.evaluate(),
                (slot, first, second),
                condition,
                step,
                result,
                two=bool(node.variables[1]),
                collects=isinstance(node.initial, ListNode),
            )
        )


def _same_numbers(element: Value) -> list[Value]:
    """Return an element of a constant list, and equal values of other number types."""
    if type(element) not in (int, Uint, float) or (type(element) is float and not element.is_integer()):
        return [element]
    whole = int(element)
    found: list[Value] = [element] if type(element) is float else [element, float(whole)]
    if -(2**63) <= whole < 2**63:
        found.append(whole)
    if 0 <= whole < 2**64:
        found.append(Uint(whole))
    return found


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
    """Build a loop with slots for the accumulator and one or ``two`` variables; ``collects`` builds a list."""
    carried, first, second = slots

    def run(state: State) -> Value:
        items = over(state)
        if type(items) is Failure:
            return items
        variables = state.slots
        variables[carried] = UNSET
        if type(items) in LISTS:
            # Elements that the loop itself adds are not visited.
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


def logic(terms: list[Evaluate], *, decisive: bool) -> Evaluate:
    """Evaluate ``&&`` or ``||``: one term may decide; otherwise the first error is the result, or what is unknown."""

    def run(state: State) -> Value:
        failure: Failure | None = None
        for term in terms:
            value = term(state)
            if value is decisive:
                return decisive
            if type(value) is not bool and (failure is None or (type(value) is Failure and value.is_unknown)):
                failure = value if type(value) is Failure else NO_SUCH_OVERLOAD
        return not decisive if failure is None else failure

    return run


def _compared(left: Evaluate, right: Evaluate, cost: Cost, result: Callable[[Value], Value]) -> Evaluate:
    def run(state: State) -> Value:
        args = left(state), right(state)
        state.cost += cost(args, None)
        for arg in args:
            if type(arg) is Failure:
                return arg
        # Elements nested in only one of them are not visited.
        state.weigh(args[:1], walks=type(args[0]) is type(args[1]))
        return result(equal(*args))

    return run


def _not_false(value_run: Evaluate) -> Evaluate:
    def run(state: State) -> Value:
        state.cost += 1
        # An error does not stop a loop that stops at the first false.
        return value_run(state) is not False

    return run


def _or(optional_run: Evaluate, other: Evaluate, *, unwraps: bool = False) -> Evaluate:
    def run(state: State) -> Value:
        optional = optional_run(state)
        if type(optional) is not OptionalValue:
            return optional
        return other(state) if optional.value is ABSENT else optional.value if unwraps else optional

    return run


# Calls that evaluate their arguments themselves.
LAZY_CALLS: dict[str, Callable[..., Evaluate]] = {
    "_==_": lambda left, right: _compared(left, right, equality_cost, lambda same: same),
    "_!=_": lambda left, right: _compared(left, right, inequality_cost, lambda same: same is not True),
    "@not_strictly_false": _not_false,
    "or": _or,
    "orValue": partial(_or, unwraps=True),
}
# Calls whose second argument is a regular expression.
PATTERNS = frozenset({"matches", "find", "findAll"})
# Costs that depend on the result, which must therefore be available.
_BY_RESULT = frozenset({"join", "slice", "lists.range", "reverse"})
# Functions that traverse all of their arguments, at all depths.
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
    """Build a call whose arguments are evaluated first."""
    function = FUNCTIONS[node.function]
    overload = node.overloads[0] if len(node.overloads) == 1 else None
    cost = (overload.overload_cost if overload else None) or function.cost
    early = len(args) > 2 or (overload.early if overload else function.operator is None)
    method = function.operator or function.dispatch
    if overload is not None and function.operator is None:
        method = overload.run if overload.unguarded else overload.guarded
    return _call(node.function, args, method, cost, early=early)


def pattern_call(node: Call, args: list[Evaluate], pattern: str) -> Evaluate:
    """Build a call with a constant regular expression, which is compiled in advance."""
    try:
        compile_regex(pattern)
    except RegexError as error:
        raise CompileError(f"program instantiation failed: {error}") from None
    function = FUNCTIONS[node.function]
    overload = node.overloads[0] if len(node.overloads) == 1 else None
    expected = (str, str, int)[: len(args)]
    method = function.operator or next(each.run for each in function.overloads if len(each.params) == len(args))

    def run(*values: Value) -> Value:
        return method(*values) if tuple(map(type, values)) == expected else NO_SUCH_OVERLOAD

    return _call(node.function, args, run, (overload.overload_cost if overload else None) or function.cost, early=True)


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
                    # cel-go computes no cost for a call that lacks arguments.
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
    # Expensive calls are not started if they exceed the limit.
    state.check()
