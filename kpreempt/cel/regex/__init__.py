"""Regular expressions as Go's ``regexp`` (RE2) has them, in time linear in the text.

Python's ``re`` tries alternatives one after the other, which a hostile expression makes last for ever; and it differs
in what spaces, ``$`` and other things mean. Here an expression becomes an automaton whose states are made as they come
up.
"""

from kpreempt.cel.regex.automaton import Regex, RegexWorkError, compile_regex
from kpreempt.cel.regex.syntax import RegexError

__all__ = ["Regex", "RegexError", "RegexWorkError", "compile_regex"]
