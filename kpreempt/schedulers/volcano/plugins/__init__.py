"""The plugins of a session, each of which registers what it has a say in."""
