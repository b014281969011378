"""The scheduling queue of kube-scheduler, and its event handlers."""
