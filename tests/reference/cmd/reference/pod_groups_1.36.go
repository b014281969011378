//go:build !before1.36 && !since1.37

package main

import (
	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	kinds["PodGroup"] = func() runtime.Object { return &schedulingv1alpha2.PodGroup{} }
}
