"""What the schedulers of 1.8, 1.13 and 1.18 have in common: one cycle, into which each version hands its rules."""
