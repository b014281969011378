"""kube-scheduler 1.13."""
