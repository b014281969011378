//go:build since1.37

package main

import (
	v1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1 "k8s.io/kubernetes/pkg/apis/core/v1"
)

// completeRequests gives a pod with limits of the whole pod the requests that the API server completes once it is
// admitted. One with requests alone stays as it came: of an older API server there are such pods.
func completeRequests(pod *v1.Pod) error {
	if pod.Spec.Resources == nil || len(pod.Spec.Resources.Limits) == 0 {
		return nil
	}
	internal := &core.Pod{}
	if err := corev1.Convert_v1_Pod_To_core_Pod(pod, internal, nil); err != nil {
		return err
	}
	podutil.DefaultPodLevelResources(internal)
	completed := &v1.Pod{}
	if err := corev1.Convert_core_Pod_To_v1_Pod(internal, completed, nil); err != nil {
		return err
	}
	pod.Spec.Resources = completed.Spec.Resources
	return nil
}
