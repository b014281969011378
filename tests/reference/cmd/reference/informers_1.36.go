//go:build !before1.36

package main

import "k8s.io/client-go/tools/cache"

func (s *staticInformer) HasSyncedChecker() cache.DoneChecker { return synced{} }
func (synced) HasSyncedChecker() cache.DoneChecker            { return synced{} }
