//go:build before1.32

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

func (w *watchedPreemption) eligible(_ context.Context, pod *v1.Pod, nominated *fwk.Status) (bool, string) {
	return w.evaluator.PodEligibleToPreemptOthers(pod, nominated)
}

// dryRun is the genuine search for candidates, from an offset until there are enough of them.
func (w *watchedPreemption) dryRun(ctx context.Context, state fwk.CycleState, pod *v1.Pod, potential []fwk.NodeInfo, budgets []*policyv1.PodDisruptionBudget, offset, enough int32) ([]preemption.Candidate, nodeStatuses, error) {
	w.evaluator.State = state
	found, statuses, err := w.evaluator.DryRunPreemption(ctx, pod, potential, budgets, offset, enough)
	return found, nodeStatuses(statuses), err
}
