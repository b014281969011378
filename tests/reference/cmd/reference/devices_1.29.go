//go:build before1.34

package main

import (
	"context"
	"errors"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/features"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
)

func init() {
	moreOptions = append(moreOptions, withoutDevices)
}

// withoutDevices refuses to run with devices, whose API is another one before 1.34.
func withoutDevices(context.Context, informers.SharedInformerFactory, *cacheSnapshot) (frameworkruntime.Option, error) {
	if utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		return nil, errors.New("the gate DynamicResourceAllocation is not run before 1.34")
	}
	return frameworkruntime.WithExtenders(nil), nil
}
