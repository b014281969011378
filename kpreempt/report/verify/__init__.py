"""Whether real schedulers did what was predicted, in words and as metrics."""
