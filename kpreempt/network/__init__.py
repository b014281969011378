"""What all connections share: TLS from settings, proxies, and deadlines. Nothing here connects."""
