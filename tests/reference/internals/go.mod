module k8s.io/kubernetes/pkg/scheduler/internals

go 1.26.0
