//go:build before1.34

package main

import "context"

func newCache(ctx context.Context) cacheInterface { return makeCache(ctx, 0) }
