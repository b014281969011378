"""What Kubernetes' controllers do next, as pure functions of what there is: nothing waits, and nothing is random."""
