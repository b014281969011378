//go:build !before1.36

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
)

func addToQueue(ctx context.Context, waiting *priorityQueue, pod *v1.Pod) { waiting.Add(ctx, pod) }
