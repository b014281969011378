"""The answer of ``check``: one module per format, each with ``render``, and the words and facts they share."""
