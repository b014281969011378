"""CEL, the expression language of Kubernetes: selectors of devices (``devices``) and rules (``documents``).

An interpreter that compiles, evaluates and counts costs as Kubernetes 1.36 does with cel-go 0.26.0 and its own
libraries. It has no effects, and ends in bounded time and memory whatever the expression is.
"""

from __future__ import annotations


class CompileError(Exception):
    """An expression that Kubernetes refuses to compile.

    ``str`` is the text as Kubernetes' cel package gives it (``compilation failed: ERROR: <input>:1:4: ...``).
    """


class EvaluationError(Exception):
    """An expression that compiles, but whose evaluation ends in an error, the cost limit included.

    ``str`` is cel-go's text, such as ``no such key: model``. The scheduler puts the object before it, and
    ``CEL runtime error: `` (``class gpu: selector #0: CEL runtime error: no such key: model``); the caller adds both.
    """
