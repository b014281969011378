//go:build !before1.36 && !since1.37

package main

import (
	"context"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/kubernetes/pkg/features"
)

func newCache(ctx context.Context) cacheInterface {
	return makeCache(ctx, nil, utilfeature.DefaultFeatureGate.Enabled(features.GenericWorkload))
}
