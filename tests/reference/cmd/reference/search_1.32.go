//go:build !before1.32

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

func (w *watchedPreemption) eligible(ctx context.Context, pod *v1.Pod, nominated *fwk.Status) (bool, string) {
	return w.evaluator.PodEligibleToPreemptOthers(ctx, pod, nominated)
}

// dryRun is the genuine search for candidates, from an offset until there are enough of them.
func (w *watchedPreemption) dryRun(ctx context.Context, state fwk.CycleState, pod *v1.Pod, potential []fwk.NodeInfo, budgets []*policyv1.PodDisruptionBudget, offset, enough int32) ([]preemption.Candidate, nodeStatuses, error) {
	return w.evaluator.DryRunPreemption(ctx, state, pod, potential, budgets, offset, enough)
}
