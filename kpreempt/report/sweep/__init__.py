"""The answer of ``kpreempt sweep``: in words, and as a page."""
