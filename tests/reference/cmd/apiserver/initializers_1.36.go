//go:build !before1.36

package main

import (
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	quotas "k8s.io/kubernetes/pkg/quota/v1/install"
)

func newInitializers(
	api kubernetes.Interface, factory informers.SharedInformerFactory, stopped <-chan struct{},
) (admission.PluginInitializers, error) {
	evaluators, err := quotas.NewQuotaConfigurationForAdmission(factory, nil)
	if err != nil {
		return nil, err
	}
	version := compatibility.DefaultBuildEffectiveVersion()
	return admission.PluginInitializers{
		initializer.New(api, nil, factory, nil, utilfeature.DefaultFeatureGate, version, stopped, nil),
		quotaInitializer{evaluators},
	}, nil
}
