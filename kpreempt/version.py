"""The version of kpreempt itself."""

__version__ = "0.1.0"
