//go:build since1.37

package main

import (
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
)

func init() {
	kinds["PodGroup"] = func() runtime.Object { return &schedulingv1beta1.PodGroup{} }
}
