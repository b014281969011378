//go:build !before1.36 && !since1.37

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

func newEvaluator(handle fwk.Handle, victims *nodeVictims, genuine *defaultpreemption.DefaultPreemption) *preemption.Evaluator {
	return preemption.NewEvaluator(defaultpreemption.Name, handle, victims, genuine.Executor)
}
