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
	// A refused setting stays in the gate's memory, so it is tried on a copy first.
	trial := utilfeature.DefaultMutableFeatureGate.DeepCopy()
	if err := trial.SetFromMap(gates); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	if err := validateGates(trial); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return nil, fmt.Errorf("feature gates: %w", err)
	}
	return resetGates, nil
}
