//go:build since1.37

package main

import (
	"context"

	"k8s.io/client-go/informers"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func init() {
	moreOptions = append(moreOptions, func(_ context.Context, _ informers.SharedInformerFactory, snapshot *cacheSnapshot) (frameworkruntime.Option, error) {
		return frameworkruntime.WithMutableSnapshotLister(snapshot), nil
	})
}
