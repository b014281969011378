//go:build !before1.32 && before1.36

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

func newEvaluator(handle fwk.Handle, victims *nodeVictims, _ *defaultpreemption.DefaultPreemption) *preemption.Evaluator {
	return preemption.NewEvaluator(defaultpreemption.Name, handle, victims, false)
}
