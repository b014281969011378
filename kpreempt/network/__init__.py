"""What all connections share: TLS from settings, and proxies. Nothing here connects."""
