//go:build !before1.34 && before1.36

package main

import "context"

func newCache(ctx context.Context) cacheInterface { return makeCache(ctx, 0, nil) }
