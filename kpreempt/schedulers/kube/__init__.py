"""kube-scheduler, in the versions of ``versions.py``."""
