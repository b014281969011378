"""The shared code of the schedulers of 1.8, 1.13 and 1.18: a scheduling cycle that takes each version's rules."""
