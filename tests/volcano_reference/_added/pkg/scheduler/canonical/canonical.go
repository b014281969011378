// Package canonical is what stands in the scheduler's code in place of chance and of parallel work.
package canonical

import (
	"context"
	"fmt"
	"sort"
)

// Keys returns a map's keys in order.
func Keys[K ~string, V any](values map[K]V) []K {
	keys := make([]K, 0, len(values))
	for key := range values {
		keys = append(keys, key)
	}
	sort.Slice(keys, func(i, j int) bool { return keys[i] < keys[j] })
	return keys
}

// ByKey returns a map's values in the order of their keys.
func ByKey[K ~string, V any](values map[K]V) []V {
	ordered := make([]V, 0, len(values))
	for _, key := range Keys(values) {
		ordered = append(ordered, values[key])
	}
	return ordered
}

// InOrder does pieces of work one after the other, until the context ends.
func InOrder(ctx context.Context, _, pieces int, work func(piece int)) {
	for piece := 0; piece < pieces && ctx.Err() == nil; piece++ {
		work(piece)
	}
}

// First is the choice among equals.
func First(int) int { return 0 }

// Die panics where the scheduler ends its process.
func Die(format string, arguments ...interface{}) { panic(fmt.Sprintf(format, arguments...)) }
