"""Shared parts of all connections: TLS settings, proxies and deadlines. Nothing here opens a connection."""
