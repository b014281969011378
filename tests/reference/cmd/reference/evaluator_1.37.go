//go:build since1.37

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	plfeature "k8s.io/kubernetes/pkg/scheduler/framework/plugins/feature"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// newEvaluator makes an evaluator that evicts nobody: its executor has no way to.
func newEvaluator(handle fwk.Handle, victims *nodeVictims, _ *defaultpreemption.DefaultPreemption) *preemption.Evaluator {
	features := plfeature.NewSchedulerFeaturesFromGates(utilfeature.DefaultFeatureGate)
	features.EnableAsyncPreemption = false
	executor := preemption.NewExecutor(handle, features)
	executor.PreemptPod = func(context.Context, preemption.Candidate, preemption.ExecutorPreemptor, *v1.Pod, string) (bool, error) {
		return false, nil
	}
	return preemption.NewEvaluator(defaultpreemption.Name, handle, victims, executor)
}
