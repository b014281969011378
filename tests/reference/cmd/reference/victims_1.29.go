//go:build !since1.37

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// told is what PostFilter says of a preemption: nothing.
func (w *watchedPreemption) told(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status {
	return fwk.NewStatus(fwk.Success)
}

func (n *nodeVictims) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, budgets []*policyv1.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	return n.remember(node, func() ([]*v1.Pod, int, *fwk.Status) {
		return n.Interface.SelectVictimsOnNode(ctx, state, pod, node, budgets)
	})
}

// workOut finds the victims on a node.
func (w *watchedPreemption) workOut(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, budgets []*policyv1.PodDisruptionBudget) error {
	_, _, _ = w.victims.SelectVictimsOnNode(ctx, state.Clone(), pod, node.Snapshot(), budgets)
	return nil
}
