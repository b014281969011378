//go:build !before1.32

package main

import (
	schedulercache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type (
	cacheInterface = schedulercache.Cache
	cacheSnapshot  = schedulercache.Snapshot
	priorityQueue  = queue.PriorityQueue
)

var (
	makeCache               = schedulercache.New
	makeQueue               = queue.NewPriorityQueue
	newSnapshot             = schedulercache.NewEmptySnapshot
	withMetricsRecorder     = queue.WithMetricsRecorder
	withPreEnqueuePluginMap = queue.WithPreEnqueuePluginMap
)

func useQueue(scheduling framework.Framework, waiting *priorityQueue) {
	scheduling.SetPodNominator(waiting)
	scheduling.SetPodActivator(waiting)
}
