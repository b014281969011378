package main

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
)

// setGates sets feature gates of this process and returns what puts every gate back to its default.
func setGates(gates map[string]bool) (reset func() error, err error) {
	if len(gates) == 0 {
		return func() error { return nil }, nil
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	reset = func() error {
		for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
			if err := utilfeature.DefaultMutableFeatureGate.ResetFeatureValueToDefault(name); err != nil {
				return fmt.Errorf("feature gate %s: %w", name, err)
			}
		}
		return nil
	}
	if errs := utilfeature.DefaultMutableFeatureGate.Validate(); len(errs) > 0 {
		return reset, fmt.Errorf("feature gates: %v", errs)
	}
	return reset, nil
}
