//go:build before1.34

package main

import "kpreempt.io/reference/cmd/reference/fwk"

type preEnqueuePlugins = []fwk.PreEnqueuePlugin

func preEnqueueOf(plugins []fwk.PreEnqueuePlugin) preEnqueuePlugins { return plugins }
