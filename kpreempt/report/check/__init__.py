"""The answer of ``check``: a module for each format, each with ``render``, and the words and facts that they share."""
