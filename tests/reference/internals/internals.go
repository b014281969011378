// Package internals names the scheduler's cache and queue, which no other module may import before 1.32. Its own path
// lies within the scheduler's, so that it may.
package internals

import (
	"k8s.io/kubernetes/pkg/scheduler/internal/cache"
	"k8s.io/kubernetes/pkg/scheduler/internal/queue"
)

type (
	Cache         = cache.Cache
	PriorityQueue = queue.PriorityQueue
	Snapshot      = cache.Snapshot
)

var (
	NewCache                = cache.New
	NewEmptySnapshot        = cache.NewEmptySnapshot
	NewPriorityQueue        = queue.NewPriorityQueue
	WithMetricsRecorder     = queue.WithMetricsRecorder
	WithPreEnqueuePluginMap = queue.WithPreEnqueuePluginMap
)
