//go:build !before1.35

package main

import (
	"k8s.io/client-go/informers"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

// followClasses has the manager know which device classes serve extended resources.
func followClasses(manager *dynamicresources.DefaultDRAManager, factory informers.SharedInformerFactory) error {
	if byResource, ok := manager.DeviceClassResolver().(*extendedresourcecache.ExtendedResourceCache); ok && byResource != nil {
		_, err := factory.Resource().V1().DeviceClasses().Informer().AddEventHandler(byResource)
		return err
	}
	return nil
}
