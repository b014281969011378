"""Evictions: the API server's response, the PodDisruptionBudgets it checks, and the pods ``kubectl drain`` selects."""
