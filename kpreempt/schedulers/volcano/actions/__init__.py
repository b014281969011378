"""The actions of a session, in the order of the configuration."""
