//go:build !before1.31

package main

import (
	"context"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
)

// handlePanics has someone told of panics in goroutines of the scheduler's code.
func handlePanics(tell func(problem any)) {
	utilruntime.PanicHandlers = []func(context.Context, any){func(_ context.Context, problem any) { tell(problem) }}
}
