//go:build !before1.31

package main

import (
	"context"

	"k8s.io/client-go/informers"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func init() {
	moreOptions = append(moreOptions, func(context.Context, informers.SharedInformerFactory, *cacheSnapshot) (frameworkruntime.Option, error) {
		return frameworkruntime.WithWaitingPods(frameworkruntime.NewWaitingPodsMap()), nil
	})
}
