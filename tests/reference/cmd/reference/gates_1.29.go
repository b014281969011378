//go:build before1.31

package main

import (
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

// validateGates has nothing to do: gates don't depend on one another.
func validateGates(featuregate.MutableFeatureGate) error { return nil }

func resetGates() error {
	defaults := map[string]bool{}
	for name, gate := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		defaults[string(name)] = gate.Default
	}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(defaults); err != nil {
		return fmt.Errorf("feature gates: %w", err)
	}
	return nil
}
