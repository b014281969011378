"""The schedulers of Kubernetes 1.8, 1.13 and 1.18: ``base`` is what they share, one package for each what differs."""
