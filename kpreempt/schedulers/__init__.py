"""The schedulers that kpreempt models, one independent package each."""
