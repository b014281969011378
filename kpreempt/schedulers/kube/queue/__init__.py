"""The scheduling queue of kube-scheduler, and what its event handlers do with it."""
