package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// session is the genuine scheduler's state over one cluster and one configuration: its cache, its queue with the
// nominated pods, the snapshot of a scheduling cycle, and the framework of every profile.
type session struct {
	profiles   profile.Map
	preemption map[string]*watchedPreemption
	nodes      []fwk.NodeInfo
	pods       cache.Indexer
	preEnqueue map[string]preEnqueuePlugins
	live       bool
	percentage int32
	stop       context.CancelFunc
}

var registerMetrics sync.Once

// moreOptions are the options of the framework that not every version has.
var moreOptions []func(context.Context, informers.SharedInformerFactory, *cacheSnapshot) (frameworkruntime.Option, error)

// newSession builds the state from the objects of a cluster. The order of nodes and pods is the order in which the
// scheduler's cache sees them. The feature gates of the process must be set already, and stay until close.
//
// live decides what the recorded verdicts leave open. With it, nominated pods wait in the scheduling queue and an image
// has one size on all nodes (that of the first node with it), as in a running scheduler. Without it, as the verdicts
// were recorded, the nominator knows the nominated pods' names and nothing else of them, so that they count as pods of
// priority 0 without requests, and every node has its own sizes.
func newSession(objects []runtime.Object, configuration *config.KubeSchedulerConfiguration, parallelism int, live bool) (_ *session, err error) {
	registerMetrics.Do(metrics.Register)
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Logger{}))
	s := &session{preemption: map[string]*watchedPreemption{}, preEnqueue: map[string]preEnqueuePlugins{}, live: live, percentage: percentageOf(configuration), stop: stop}
	defer func() {
		if err != nil {
			stop()
		}
	}()

	client := &fake.Clientset{}
	factory := informers.NewSharedInformerFactory(client, 0)
	if err := s.fill(factory, objects); err != nil {
		return nil, err
	}
	snapshot := newSnapshot()
	if err := s.buildProfiles(ctx, client, factory, snapshot, configuration, parallelism); err != nil {
		return nil, err
	}
	if err := s.fillCache(ctx, objects, snapshot); err != nil {
		return nil, err
	}
	if err := s.fillQueue(ctx, objects, factory, configuration); err != nil {
		return nil, err
	}
	return s, nil
}

// fill gives the factory an informer over the objects of every kind that is read.
func (s *session) fill(factory informers.SharedInformerFactory, objects []runtime.Object) error {
	byType := map[string][]runtime.Object{}
	for _, object := range objects {
		if pod, isPod := object.(*v1.Pod); isPod && finished(pod) {
			continue
		}
		name := fmt.Sprintf("%T", object)
		byType[name] = append(byType[name], object)
	}
	for _, create := range kinds {
		kind := create()
		indexers := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
		if _, isPod := kind.(*v1.Pod); isPod {
			indexers = cache.Indexers{}
		}
		informer, err := registerStatic(factory, kind, byType[fmt.Sprintf("%T", kind)], indexers)
		if err != nil {
			return err
		}
		if _, isPod := kind.(*v1.Pod); isPod {
			s.pods = informer.indexer
		}
	}
	return nil
}

// finished says whether the scheduler's pod informer leaves a pod out.
func finished(pod *v1.Pod) bool {
	return pod.Status.Phase == v1.PodSucceeded || pod.Status.Phase == v1.PodFailed
}

// buildProfiles builds the framework of every profile, with the in-tree plugins and what they share.
func (s *session) buildProfiles(ctx context.Context, client *fake.Clientset, factory informers.SharedInformerFactory, snapshot *cacheSnapshot, configuration *config.KubeSchedulerConfiguration, parallelism int) error {
	if len(configuration.Extenders) > 0 {
		return errors.New("configurations with extenders are not run")
	}
	options := []frameworkruntime.Option{
		frameworkruntime.WithComponentConfigVersion(configuration.TypeMeta.APIVersion),
		frameworkruntime.WithClientSet(client),
		frameworkruntime.WithInformerFactory(factory),
		frameworkruntime.WithSnapshotSharedLister(snapshot),
		frameworkruntime.WithParallelism(parallelism),
		frameworkruntime.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done())),
	}
	for _, more := range moreOptions {
		option, err := more(ctx, factory, snapshot)
		if err != nil {
			return err
		}
		options = append(options, option)
	}
	registry := plugins.NewInTreeRegistry()
	original := registry[names.DefaultPreemption]
	registry[names.DefaultPreemption] = func(ctx context.Context, args runtime.Object, handle fwk.Handle) (fwk.Plugin, error) {
		plugin, err := original(ctx, args, handle)
		if err != nil {
			return nil, err
		}
		watched := watchPreemption(plugin, handle)
		s.preemption[handle.(framework.Framework).ProfileName()] = watched
		return watched, nil
	}
	broadcaster := events.NewBroadcaster(&events.EventSinkImpl{Interface: client.EventsV1()})
	var err error
	s.profiles, err = profile.NewMap(ctx, configuration.Profiles, registry, profile.NewRecorderFactory(broadcaster), options...)
	if err != nil {
		return err
	}
	for name, scheduling := range s.profiles {
		s.preEnqueue[name] = preEnqueueOf(scheduling.PreEnqueuePlugins())
	}
	return nil
}

// fillCache puts nodes and assigned pods into the scheduler's cache and takes the snapshot of a scheduling cycle.
func (s *session) fillCache(ctx context.Context, objects []runtime.Object, snapshot *cacheSnapshot) error {
	logger := klog.FromContext(ctx)
	inCache := newCache(ctx)
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.Node:
			inCache.AddNode(logger, object)
		case *v1.Pod:
			if object.Spec.NodeName == "" || finished(object) {
				continue
			}
			if err := inCache.AddPod(logger, object); err != nil {
				return fmt.Errorf("pod %s/%s: %w", object.Namespace, object.Name, err)
			}
		}
	}
	if err := inCache.UpdateSnapshot(logger, snapshot); err != nil {
		return err
	}
	nodes, err := snapshot.NodeInfos().List()
	if err != nil {
		return err
	}
	s.nodes = nodes
	if !s.live {
		for _, node := range nodes {
			ownImageSizes(fwk.Stored(node))
		}
	}
	return nil
}

// ownImageSizes gives a node's images the sizes that the node reports.
func ownImageSizes(node *framework.NodeInfo) {
	for _, image := range node.Node().Status.Images {
		for _, name := range image.Names {
			node.ImageStates[name] = &fwk.ImageStateSummary{Size: image.SizeBytes, NumNodes: node.ImageStates[name].NumNodes}
		}
	}
}

// fillQueue makes the scheduling queue, which is the nominator, know the pods that wait for a node nominated to them.
func (s *session) fillQueue(ctx context.Context, objects []runtime.Object, factory informers.SharedInformerFactory, configuration *config.KubeSchedulerConfiguration) error {
	waiting := makeQueue(
		s.profiles[configuration.Profiles[0].SchedulerName].QueueSortFunc(),
		factory,
		withPreEnqueuePluginMap(s.preEnqueue),
		withMetricsRecorder(queueRecorder(metrics.NewMetricsAsyncRecorder(1000, time.Second, ctx.Done()))),
	)
	for _, object := range objects {
		pod, isPod := object.(*v1.Pod)
		if !isPod || pod.Spec.NodeName != "" || pod.Status.NominatedNodeName == "" || finished(pod) ||
			!s.profiles.HandlesSchedulerName(pod.Spec.SchedulerName) {
			continue
		}
		if s.live {
			addToQueue(ctx, waiting, pod)
			continue
		}
		nominated, err := framework.NewPodInfo(pod)
		if err != nil {
			return err
		}
		waiting.AddNominatedPod(klog.FromContext(ctx), nominated, nil)
	}
	for _, scheduling := range s.profiles {
		useQueue(scheduling, waiting)
	}
	return nil
}

// close ends what the session runs in the background.
func (s *session) close() {
	s.stop()
	closeProfiles(s.profiles)
}

// percentageOf is the percentageOfNodesToScore for profiles that have none of their own.
func percentageOf(configuration *config.KubeSchedulerConfiguration) int32 {
	if configuration.PercentageOfNodesToScore == nil {
		return 0
	}
	return *configuration.PercentageOfNodesToScore
}
