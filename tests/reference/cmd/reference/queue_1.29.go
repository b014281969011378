//go:build before1.35

package main

import "k8s.io/kubernetes/pkg/scheduler/metrics"

func queueRecorder(recorder *metrics.MetricAsyncRecorder) metrics.MetricAsyncRecorder {
	return *recorder
}
