"""kube-scheduler 1.8, where preemption began."""
