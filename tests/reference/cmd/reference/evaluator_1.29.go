//go:build before1.32

package main

import (
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

func newEvaluator(handle fwk.Handle, victims *nodeVictims, _ *defaultpreemption.DefaultPreemption) *preemption.Evaluator {
	informers := handle.SharedInformerFactory()
	return &preemption.Evaluator{
		PluginName: defaultpreemption.Name,
		Handler:    handle,
		PodLister:  informers.Core().V1().Pods().Lister(),
		PdbLister:  informers.Policy().V1().PodDisruptionBudgets().Lister(),
		Interface:  victims,
	}
}
