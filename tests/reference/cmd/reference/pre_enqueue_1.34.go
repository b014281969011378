//go:build !before1.34

package main

import "kpreempt.io/reference/cmd/reference/fwk"

type preEnqueuePlugins = map[string]fwk.PreEnqueuePlugin

func preEnqueueOf(plugins []fwk.PreEnqueuePlugin) preEnqueuePlugins {
	byName := preEnqueuePlugins{}
	for _, plugin := range plugins {
		byName[plugin.Name()] = plugin
	}
	return byName
}
