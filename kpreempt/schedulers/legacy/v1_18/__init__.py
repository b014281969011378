"""kube-scheduler 1.18 (v1.18.19): the framework with its default profile, and its preemption."""
