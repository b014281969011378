"""From the text of an expression to what evaluates it: all steps, and their bounds."""

from __future__ import annotations

from collections.abc import Mapping

from kpreempt.cel import CompileError, EvaluationError, libraries
from kpreempt.cel.checker import Environment, check
from kpreempt.cel.evaluation import COST_EXCEEDED, CostExceededError, State
from kpreempt.cel.parser import parse
from kpreempt.cel.planner import plan
from kpreempt.cel.source import Problems
from kpreempt.cel.syntax import Node
from kpreempt.cel.types import Type, TypeTooDeepError
from kpreempt.cel.validators import validate
from kpreempt.cel.values import FatalError, TooLargeError, Value

# What Kubernetes lets one selector cost (``resourceapi.CELSelectorExpressionMaxCost``), and its length in bytes.
COST_LIMIT = 1_000_000
MAX_LENGTH = 10 * 1024

assert libraries


class Program:
    """A compiled expression over variables in the order of the environment."""

    def __init__(self, expression: str, environment: Environment, results: frozenset[Type]) -> None:
        """``results`` are the types that it may have. Raises ``CompileError``."""
        length = len(expression.encode(errors="replace"))
        if length > MAX_LENGTH:
            raise CompileError(f"Too long: may not be more than {MAX_LENGTH} bytes")
        try:
            tree = _checked(expression, environment, results)
            self._run, self._slots = plan(tree, _numbers(environment))
        except (RecursionError, TypeTooDeepError):
            raise CompileError("compilation failed: the expression is nested too deeply") from None
        except (FatalError, TooLargeError) as error:
            raise CompileError(f"program instantiation failed: {error}") from None
        self.tree = tree
        self._variables = len(environment.variables)
        # What the last evaluation cost, and whether its result may have to do with the order of a map.
        self.cost = 0
        self.by_chance = False

    def evaluate(self, *values: Value) -> Value:
        """The value, which may be a ``Failure``. Raises ``EvaluationError`` where the evaluation itself ends early."""
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


def _checked(expression: str, environment: Environment, results: frozenset[Type]) -> Node:
    problems = Problems(expression)
    tree = parse(expression, problems)
    problems.fail()
    assert tree is not None
    check(tree, environment, problems)
    problems.fail()
    validate(tree, problems)
    problems.fail()
    if tree.type not in results:
        raise CompileError(f"must evaluate to bool or the unknown type, not {tree.type.full_name}")
    return tree


def _numbers(environment: Environment) -> Mapping[str, int]:
    return {name: number for number, name in enumerate(environment.variables)}
