//go:build since1.37

package main

import (
	"context"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

func newCache(ctx context.Context) cacheInterface {
	gates := utilfeature.DefaultFeatureGate
	return makeCache(ctx, nil, gates.Enabled(features.GenericWorkload), gates.Enabled(features.CompositePodGroup))
}
