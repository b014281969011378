"""``python -m kpreempt`` is the same as ``kpreempt``."""

from kpreempt.cli import main

if __name__ == "__main__":
    main()
