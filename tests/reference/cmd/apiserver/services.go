package main

import (
	"net"

	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"
	api "k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/registry/core/service/ipallocator"
	"k8s.io/kubernetes/pkg/registry/core/service/portallocator"
	services "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// ranges are those of a cluster of both families.
var ranges = map[api.IPFamily]string{api.IPv4Protocol: "10.96.0.0/12", api.IPv6Protocol: "fd00:96::/108"}

// newServices makes the registry of Services, whose hooks complete addresses and ports before validation. It has no
// storage.
func newServices() (*services.REST, error) {
	allocators := map[api.IPFamily]ipallocator.Interface{}
	for family, text := range ranges {
		_, addresses, err := net.ParseCIDR(text)
		if err != nil {
			return nil, err
		}
		if allocators[family], err = ipallocator.NewInMemory(addresses); err != nil {
			return nil, err
		}
	}
	ports, err := portallocator.NewInMemory(utilnet.PortRange{Base: 30000, Size: 2768})
	if err != nil {
		return nil, err
	}
	options := generic.RESTOptions{
		StorageConfig:  &storagebackend.ConfigForResource{},
		Decorator:      noStorage,
		ResourcePrefix: "services",
	}
	registry, _, _, err := services.NewREST(options, api.IPv4Protocol, allocators, ports, nil, nil, nil)
	return registry, err
}

func noStorage(
	*storagebackend.ConfigForResource,
	string,
	func(runtime.Object) (string, error),
	func() runtime.Object,
	func() runtime.Object,
	storage.AttrFunc,
	storage.IndexerFuncs,
	*cache.Indexers,
) (storage.Interface, factory.DestroyFunc, error) {
	return nil, func() {}, nil
}
