"""The gate as configured: options, ``kpreempt.toml`` and a baseline, and where their files are read."""
