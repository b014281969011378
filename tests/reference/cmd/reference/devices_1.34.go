//go:build !before1.34

package main

import (
	"context"
	"fmt"

	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/klog/v2"
	resourcev1defaults "k8s.io/kubernetes/pkg/apis/resource/v1"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/util/assumecache"
)

func init() {
	kinds["ResourceClaim"] = func() runtime.Object { return &resourcev1.ResourceClaim{} }
	kinds["ResourceSlice"] = func() runtime.Object { return &resourcev1.ResourceSlice{} }
	kinds["DeviceClass"] = func() runtime.Object { return &resourcev1.DeviceClass{} }
	kinds["DeviceTaintRule"] = newTaintRule
	utilruntime.Must(resourcev1.AddToScheme(defaulting))
	utilruntime.Must(resourcev1defaults.RegisterDefaults(defaulting))
	moreOptions = append(moreOptions, withDevices)
}

// withDevices builds what the DynamicResources plugin reads claims, slices and classes from.
func withDevices(ctx context.Context, factory informers.SharedInformerFactory, _ *cacheSnapshot) (frameworkruntime.Option, error) {
	if !utilfeature.DefaultFeatureGate.Enabled(features.DynamicResourceAllocation) {
		return frameworkruntime.WithSharedDRAManager(nil), nil
	}
	resources := factory.Resource().V1()
	claims := assumecache.NewAssumeCache(klog.FromContext(ctx), resources.ResourceClaims().Informer(), "ResourceClaim", "", nil)
	options := tracker.Options{
		EnableConsumableCapacity: utilfeature.DefaultFeatureGate.Enabled(features.DRAConsumableCapacity),
		SliceInformer:            resources.ResourceSlices(),
	}
	followTaintRules(&options, factory)
	slices, err := tracker.StartTracker(ctx, options)
	if err != nil {
		return nil, fmt.Errorf("resource slice tracker: %w", err)
	}
	manager := dynamicresources.NewDRAManager(ctx, claims, slices, factory)
	if err := followClasses(manager, factory); err != nil {
		return nil, err
	}
	return frameworkruntime.WithSharedDRAManager(manager), nil
}
