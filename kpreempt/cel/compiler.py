"""Compile the text of an expression to a program, with all steps and limits.

``validate`` is Kubernetes' check of constants after type checking (cel-go v0.26.0 ``cel/validator.go``).
"""

from __future__ import annotations

from kpreempt.cel import CompileError, EvaluationError, libraries
from kpreempt.cel.checker import Environment, check
from kpreempt.cel.evaluation import COST_EXCEEDED, CostExceededError, State
from kpreempt.cel.functions import FUNCTIONS
from kpreempt.cel.libraries.conversions import COMPLAINTS, Clause, FormatError, clauses, complaint
from kpreempt.cel.parser import parse
from kpreempt.cel.planner import plan
from kpreempt.cel.regex import RegexError, compile_regex
from kpreempt.cel.source import Problems
from kpreempt.cel.syntax import Call, ListNode, Literal, MapNode, Node, walk
from kpreempt.cel.types import DYN, Type, TypeTooDeepError, equivalent
from kpreempt.cel.values import Failure, FatalError, TooLargeError, Value

# Kubernetes' cost limit for a selector (``resourceapi.CELSelectorExpressionMaxCost``), and its maximum length in bytes.
COST_LIMIT = 1_000_000
MAX_LENGTH = 10 * 1024

assert libraries


class Program:
    """A compiled expression over variables in the order of the environment.

    ``cost`` is the cost of the last evaluation, in Kubernetes' units. ``by_chance`` means that this evaluation made a
    list in map order, which is random in cel-go: another evaluation might give another result.
    """

    def __init__(
        self, expression: str, environment: Environment, results: frozenset[Type] | None, max_length: int = MAX_LENGTH
    ) -> None:
        """``results`` are the permitted types of the result, ``None`` for any. Raises ``CompileError``."""
        if len(expression.encode(errors="replace")) > max_length:
            raise CompileError(f"Too long: may not be more than {max_length} bytes")
        try:
            tree = _checked(expression, environment, results)
            self._run, self._slots = plan(tree, {name: number for number, name in enumerate(environment.variables)})
        except (RecursionError, TypeTooDeepError):
            raise CompileError("compilation failed: the expression is nested too deeply") from None
        except (FatalError, TooLargeError) as error:
            raise CompileError(f"program instantiation failed: {error}") from None
        self.expression = expression
        self.tree = tree
        self._variables = len(environment.variables)
        self.cost = 0
        self.by_chance = False

    def value_for(self, *values: Value) -> Value:
        """Return the value, which may be a ``Failure``. Raises ``EvaluationError`` if the evaluation is aborted."""
        state = State([*values, *[None] * (self._slots - self._variables)], COST_LIMIT)
        try:
            value = self._run(state)
            state.check()
        except CostExceededError:
            raise EvaluationError(COST_EXCEEDED) from None
        except (TooLargeError, FatalError) as error:
            raise EvaluationError(str(error)) from None
        except RecursionError:
            raise EvaluationError("values are nested too deeply") from None
        finally:
            self.cost, self.by_chance = state.cost, state.by_chance
        return value


def _checked(expression: str, environment: Environment, results: frozenset[Type] | None) -> Node:
    problems = Problems(expression)
    tree = parse(expression, problems)
    problems.fail()
    assert tree is not None
    check(tree, environment, problems)
    problems.fail()
    validate(tree, problems)
    problems.fail()
    if results is not None and tree.type not in results:
        raise CompileError(f"must evaluate to bool or the unknown type, not {tree.type.full_name}")
    return tree


_PLAIN = ("int", "uint", "double", "bool", "string", "bytes", "timestamp", "duration", "type", "null", "list", "map")
_ALLOWED = {
    "s": _PLAIN,
    "d": ("int", "uint"),
    "f": ("double", "string"),
    "e": ("double", "string"),
    "b": ("int", "uint", "bool"),
    "x": ("int", "uint", "string", "bytes"),
    "X": ("int", "uint", "string", "bytes"),
    "o": ("int", "uint"),
}
assert _ALLOWED.keys() == COMPLAINTS.keys()


def validate(tree: Node, problems: Problems) -> None:
    """Report invalid durations, timestamps, regular expressions and formats, and mixed literals."""
    exempt = _formatted(tree)
    for node in walk(tree):
        if isinstance(node, Call):
            first = node.args[0] if node.args else None
            if node.function == "format":
                _format(node, problems)
            elif node.function == "matches" and isinstance(first, Literal):
                try:
                    compile_regex(first.value)
                except RegexError:
                    problems.report(first.offset, "invalid matches argument")
            elif (
                node.function in ("duration", "timestamp")
                and isinstance(first, Literal)
                and type(FUNCTIONS[node.function].dispatch(first.value)) is Failure
            ):
                problems.report(first.offset, f"invalid {node.function} argument")
        elif id(node) in exempt:
            continue
        elif isinstance(node, ListNode):
            _mixed(node.elements, node.optionals, problems, once=True)
        elif isinstance(node, MapNode):
            _mixed([key for key, _, _ in node.entries], frozenset(), problems)
            optionals = frozenset(index for index, entry in enumerate(node.entries) if entry[2])
            _mixed([value for _, value, _ in node.entries], optionals, problems)


def _formatted(tree: Node) -> set[int]:
    """Return the arguments of ``format`` calls, which may be mixed."""
    found: set[int] = set()
    for node in walk(tree):
        if isinstance(node, Call) and node.function == "format" and id(node) not in found:
            found.update(map(id, walk(node)))
    return found


def _mixed(nodes: list[Node], optionals: frozenset[int], problems: Problems, *, once: bool = False) -> None:
    """Report elements of different types; the first one determines the type."""
    expected: Type | None = None
    for index, node in enumerate(nodes):
        given = node.type
        if index in optionals:
            if not given.params:
                raise FatalError("runtime error: index out of range [0] with length 0")
            given = given.params[0]
        if expected is None:
            expected = given
        elif not equivalent(expected, given):
            problems.report(node.offset, f"expected type '{expected.text}' but found '{given.text}'")
            if once:
                return


def _format(node: Call, problems: Problems) -> None:
    if not isinstance(node.target, Literal) or len(node.args) != 1 or not isinstance(node.args[0], ListNode):
        return
    args = node.args[0].elements
    used = 0
    try:
        for part in clauses(node.target.value, len(args), checked=True):
            if isinstance(part, Clause):
                used += 1
                if bad := _unfit(args[part.argument], part.letter):
                    problems.report(bad.offset, complaint(part.letter, bad.type.runtime_name))
                    return
    except FormatError as error:
        problems.report(node.offset, str(error))
        return
    if len(args) > used:
        what = f"too many arguments supplied to string.format (expected {used}, got {len(args)})"
        problems.report(node.offset, what)


def _unfit(node: Node, letter: str) -> Node | None:
    """Return the node whose type no clause of that letter can format; ``%s`` checks inside literals."""
    if node.type is not DYN and node.type.kind not in _ALLOWED[letter]:
        return node
    if letter != "s":
        return None
    inside: list[Node] = []
    if isinstance(node, ListNode):
        inside = node.elements
    elif isinstance(node, MapNode):
        inside = [part for key, value, _ in node.entries for part in (key, value)]
    return next((bad for part in inside if (bad := _unfit(part, letter))), None)
