//go:build !before1.34 && before1.35

package main

import (
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/dynamic-resource-allocation/resourceslice/tracker"
	"k8s.io/kubernetes/pkg/features"
)

func newTaintRule() runtime.Object { return &resourcev1alpha3.DeviceTaintRule{} }

func followTaintRules(options *tracker.Options, factory informers.SharedInformerFactory) {
	options.EnableDeviceTaints = utilfeature.DefaultFeatureGate.Enabled(features.DRADeviceTaints)
	if options.EnableDeviceTaints {
		options.TaintInformer = factory.Resource().V1alpha3().DeviceTaintRules()
		options.ClassInformer = factory.Resource().V1().DeviceClasses()
	}
}
