//go:build !before1.30

package main

import (
	"context"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"kpreempt.io/reference/cmd/reference/fwk"
)

//go:linkname findNodesThatPassFilters k8s.io/kubernetes/pkg/scheduler.(*Scheduler).findNodesThatPassFilters
func findNodesThatPassFilters(sched *scheduler.Scheduler, ctx context.Context, scheduling framework.Framework, state fwk.CycleState, pod *v1.Pod, diagnosis *framework.Diagnosis, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, error)

// nodesThatPassFilters is the genuine search for nodes to score.
func (d *decision) nodesThatPassFilters(sched *scheduler.Scheduler, nodes []fwk.NodeInfo) ([]fwk.NodeInfo, error) {
	diagnosis := diagnosisOf(newStatuses())
	return findNodesThatPassFilters(sched, d.ctx, d.scheduling, d.state, d.pod, &diagnosis, nodes)
}

// scored are nodes as the score plugins take them.
func scored(nodes []fwk.NodeInfo) []fwk.NodeInfo { return nodes }

func closeProfiles(profiles profile.Map) { _ = profiles.Close() }
