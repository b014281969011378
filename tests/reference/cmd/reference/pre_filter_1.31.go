//go:build !before1.31

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"kpreempt.io/reference/cmd/reference/fwk"
)

func runPreFilterPlugins(ctx context.Context, scheduling framework.Framework, state fwk.CycleState, pod *v1.Pod) (*fwk.PreFilterResult, *fwk.Status, sets.Set[string]) {
	return scheduling.RunPreFilterPlugins(ctx, state, pod)
}
