//go:build before1.32

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/internals"
)

type (
	cacheInterface = internals.Cache
	cacheSnapshot  = internals.Snapshot
	priorityQueue  = internals.PriorityQueue
)

var (
	makeCache               = internals.NewCache
	makeQueue               = internals.NewPriorityQueue
	newSnapshot             = internals.NewEmptySnapshot
	withMetricsRecorder     = internals.WithMetricsRecorder
	withPreEnqueuePluginMap = internals.WithPreEnqueuePluginMap
)

func useQueue(scheduling framework.Framework, waiting *priorityQueue) {
	scheduling.SetPodNominator(waiting)
}
