//go:build !before1.31

package main

import (
	"errors"
	"fmt"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/featuregate"
)

func validateGates(gates featuregate.MutableVersionedFeatureGate) error {
	return errors.Join(gates.Validate()...)
}

func resetGates() error {
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if err := utilfeature.DefaultMutableFeatureGate.ResetFeatureValueToDefault(name); err != nil {
			return fmt.Errorf("feature gate %s: %w", name, err)
		}
	}
	return nil
}
