package main

import (
	_ "k8s.io/client-go/kubernetes/fake"
	_ "k8s.io/kubernetes/pkg/scheduler"
)

func main() {}
