package main

import (
	"fmt"

	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/scheme"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/validation"
)

// readConfiguration decodes, defaults and validates a KubeSchedulerConfiguration as the scheduler's command does.
// Without a text it is the default one. The default profile depends on the feature gates, so set them first.
func readConfiguration(text string) (*config.KubeSchedulerConfiguration, error) {
	if text == "" {
		return latest.Default()
	}
	object, version, err := scheme.Codecs.UniversalDecoder().Decode([]byte(text), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	configuration, ok := object.(*config.KubeSchedulerConfiguration)
	if !ok {
		return nil, fmt.Errorf("config: it is a %s", version)
	}
	configuration.TypeMeta.APIVersion = version.GroupVersion().String()
	if err := validation.ValidateKubeSchedulerConfiguration(configuration); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return configuration, nil
}
