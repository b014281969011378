"""The program, to hold the library against it."""

from tests.unit.cli.conftest import kpreempt

__all__ = ["kpreempt"]
