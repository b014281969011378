//go:build since1.37

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// told is what PostFilter says of a preemption on a node. The genuine search is asked as if no other node could help.
func (w *watchedPreemption) told(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	statuses := newStatuses()
	statuses.Set(node, fwk.NewStatus(fwk.Unschedulable))
	w.victims.remembered = map[string]victimsAnswer{}
	defer func() { w.victims.remembered = nil }()
	for _, found := range w.outcome.candidates {
		answer := victimsAnswer{found.Victims().Pods, int(found.Victims().NumPDBViolations), fwk.NewStatus(fwk.Success)}
		w.victims.remembered[found.Name()] = answer
	}
	_, outcome := w.evaluator.Preempt(ctx, state, pod, statuses)
	return fwk.NewStatus(outcome.Code(), "preemption: "+outcome.Message())
}

func (n *nodeVictims) SelectVictimsOnNode(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, possible []*preemption.DomainVictim, budgets []*policyv1.PodDisruptionBudget) ([]*v1.Pod, int, *fwk.Status) {
	return n.remember(node, func() ([]*v1.Pod, int, *fwk.Status) {
		return n.Interface.SelectVictimsOnNode(ctx, state, pod, node, possible, budgets)
	})
}

// workOut finds the victims on a node.
func (w *watchedPreemption) workOut(ctx context.Context, state fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo, budgets []*policyv1.PodDisruptionBudget) error {
	possible, err := w.evaluator.GetVictimsOnNode(ctx, node)
	if err == nil {
		_, _, _ = w.victims.SelectVictimsOnNode(ctx, state.Clone(), pod, node.Snapshot(), possible, budgets)
	}
	return err
}
