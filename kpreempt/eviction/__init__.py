"""Evictions: what the API server answers to one, the budgets it asks, and which pods ``kubectl drain`` chooses."""
