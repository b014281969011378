"""The schedulers of Kubernetes 1.8, 1.13 and 1.18: ``base`` is the shared code, plus one module or package each."""
