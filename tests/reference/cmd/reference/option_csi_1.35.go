//go:build !before1.35

package main

import (
	"context"

	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/nodevolumelimits"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func init() {
	moreOptions = append(moreOptions, func(_ context.Context, factory informers.SharedInformerFactory, _ *cacheSnapshot) (frameworkruntime.Option, error) {
		return frameworkruntime.WithSharedCSIManager(nodevolumelimits.NewCSIManager(factory.Storage().V1().CSINodes().Lister())), nil
	})
}
