package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

// staticInformer is a shared informer over a fixed set of objects. It is in sync from the start and hands the objects
// to every handler inside AddEventHandler, so that no goroutine runs and nothing has to be waited for.
type staticInformer struct {
	indexer cache.Indexer
	order   []runtime.Object
}

var _ cache.SharedIndexInformer = &staticInformer{}

// registerStatic puts an informer over objects of one kind into the factory, before anything asks for that kind.
func registerStatic(factory informers.SharedInformerFactory, kind runtime.Object, objects []runtime.Object, indexers cache.Indexers) (*staticInformer, error) {
	informer := &staticInformer{indexer: cache.NewIndexer(cache.MetaNamespaceKeyFunc, indexers), order: objects}
	for _, object := range objects {
		if err := informer.indexer.Add(object); err != nil {
			return nil, err
		}
	}
	got := factory.InformerFor(kind, func(clientset.Interface, time.Duration) cache.SharedIndexInformer { return informer })
	if got != informer {
		return nil, fmt.Errorf("an informer for %T exists already", kind)
	}
	return informer, nil
}

func (s *staticInformer) AddEventHandler(handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	for _, object := range s.order {
		handler.OnAdd(object, true)
	}
	return synced{}, nil
}

func (s *staticInformer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler, _ time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return s.AddEventHandler(handler)
}

func (s *staticInformer) RemoveEventHandler(cache.ResourceEventHandlerRegistration) error { return nil }

func (s *staticInformer) GetStore() cache.Store     { return s.indexer }
func (s *staticInformer) GetIndexer() cache.Indexer { return s.indexer }

func (s *staticInformer) AddIndexers(indexers cache.Indexers) error {
	return s.indexer.AddIndexers(indexers)
}

func (s *staticInformer) GetController() cache.Controller { return nil }

func (s *staticInformer) Run(stop <-chan struct{})           { <-stop }
func (s *staticInformer) RunWithContext(ctx context.Context) { <-ctx.Done() }

func (s *staticInformer) HasSynced() bool                 { return true }
func (s *staticInformer) LastSyncResourceVersion() string { return "" }
func (s *staticInformer) IsStopped() bool                 { return false }
func (s *staticInformer) SetTransform(cache.TransformFunc) error {
	return errors.New("the objects are there already: too late to transform them")
}

func (s *staticInformer) SetWatchErrorHandler(cache.WatchErrorHandler) error { return nil }

// synced is a handler registration, and a check, that is done from the start.
type synced struct{}

var alreadyDone = func() chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}()

func (synced) HasSynced() bool       { return true }
func (synced) Name() string          { return "static objects" }
func (synced) Done() <-chan struct{} { return alreadyDone }
