"""Finds remedies: candidates from the cause of a problem, proven by a simulation, minimal, and in an expert's order.

A command supplies candidates (``search.Candidate``) and a function that proves one; all else is shared: what is never
advised (``excluded``), who owns and manages an object (``owners``), combinations and limits (``search``), and the
selection (``selection``).
"""
