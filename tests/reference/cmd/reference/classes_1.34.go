//go:build !before1.34 && before1.35

package main

import (
	"k8s.io/client-go/informers"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/dynamicresources"
)

func followClasses(*dynamicresources.DefaultDRAManager, informers.SharedInformerFactory) error {
	return nil
}
