"""The plugins of a session, each of which registers its functions."""
