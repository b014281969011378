"""The gate that is asked for: options, ``kpreempt.toml`` and a baseline, and where their files are read."""
