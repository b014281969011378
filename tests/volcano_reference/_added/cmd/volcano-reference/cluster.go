package main

import (
	"context"
	"sort"

	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"volcano.sh/apis/pkg/apis/scheduling"
	vcv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/cache"
	"volcano.sh/volcano/pkg/scheduler/capabilities/volumebinding"
)

const (
	schedulerName = "volcano"
	defaultQueue  = "default"
)

// client is never used: nothing is asked for or written.
var client = kubernetes.NewForConfigOrDie(&rest.Config{Host: "127.0.0.1:0"})

// cluster is the genuine cache, with its effects told to a recorder.
type cluster struct {
	*cache.SchedulerCache
	recorder *recorder
	stop     context.CancelFunc
}

// newCluster puts objects into a cache as its event handlers take them from informers: nodes first, pods last.
func newCluster(objects []runtime.Object, recorder *recorder) *cluster {
	ctx, stop := context.WithCancel(context.Background())
	factory, binder := volumes(ctx, objects)
	sc := cache.NewInMemory(cache.Outside{
		Client: client, Informers: factory, Recorder: recorder, Evictor: recorder, StatusUpdater: recorder, VolumeBinder: binder,
	}, schedulerName, defaultQueue, len(objects))
	// The scheduler creates this queue when it starts.
	reclaimable := true
	sc.AddQueueV1beta1(&vcv1beta1.Queue{
		ObjectMeta: metav1.ObjectMeta{Name: defaultQueue},
		Spec:       vcv1beta1.QueueSpec{Weight: 1, Reclaimable: &reclaimable},
	})
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.Node:
			sc.AddNode(object)
		case *vcv1beta1.Queue:
			sc.AddQueueV1beta1(object)
		case *schedulingv1.PriorityClass:
			sc.AddPriorityClass(object)
		case *v1.ResourceQuota:
			sc.AddResourceQuota(object)
		case *storagev1.CSINode:
			sc.AddOrUpdateCSINode(object)
		}
	}
	for _, object := range objects {
		switch object := object.(type) {
		case *v1.Node:
			// As its kubelet reports every few minutes. Only then does a node know on how many others its images are.
			sc.UpdateNode(object, object)
		case *vcv1beta1.PodGroup:
			sc.AddPodGroupV1beta1(object)
		}
	}
	for _, object := range objects {
		// The filter of the informer's handler.
		if pod, ok := object.(*v1.Pod); ok && (pod.Spec.SchedulerName == schedulerName || pod.Spec.NodeName != "") {
			sc.AddPod(pod)
		}
	}
	sort.Strings(sc.NodeList)
	return &cluster{SchedulerCache: sc, recorder: recorder, stop: stop}
}

// volumes returns the informers, and the volume binder: the genuine one where there are volumes, and otherwise one that
// takes any claim as bound.
func volumes(ctx context.Context, objects []runtime.Object) (informers.SharedInformerFactory, cache.VolumeBinder) {
	var listed []runtime.Object
	withVolumes := false
	for _, object := range objects {
		switch object.(type) {
		case *vcv1beta1.PodGroup, *vcv1beta1.Queue:
			continue
		case *v1.PersistentVolume, *v1.PersistentVolumeClaim, *storagev1.StorageClass:
			withVolumes = true
		}
		listed = append(listed, object)
	}
	if !withVolumes {
		factory := informers.NewSharedInformerFactory(client, 0)
		for _, object := range listed {
			if informer := informerOf(factory, object); informer != nil {
				_ = informer.GetIndexer().Add(object)
			}
		}
		return factory, noVolumes{}
	}
	known := fake.NewSimpleClientset()
	for _, object := range listed {
		// A second object of the same name is left out.
		_ = known.Tracker().Add(object.DeepCopyObject())
	}
	factory := informers.NewSharedInformerFactory(known, 0)
	binder := cache.NewVolumeBinder(known, factory)
	for _, object := range listed {
		informerOf(factory, object)
	}
	factory.Storage().V1().CSIDrivers().Informer()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return factory, binder
}

func informerOf(factory informers.SharedInformerFactory, object runtime.Object) toolscache.SharedIndexInformer {
	generic, err := factory.ForResource(resourceOf(object))
	if err != nil {
		return nil
	}
	return generic.Informer()
}

// noVolumes binds nothing, as in the scheduler's own tests.
type noVolumes struct{}

func (noVolumes) GetPodVolumes(*api.TaskInfo, *v1.Node) (*volumebinding.PodVolumes, error) {
	return nil, nil
}
func (noVolumes) RevertVolumes(*api.TaskInfo, *volumebinding.PodVolumes) {}
func (noVolumes) AllocateVolumes(*api.TaskInfo, string, *volumebinding.PodVolumes) error {
	return nil
}
func (noVolumes) BindVolumes(*api.TaskInfo, *volumebinding.PodVolumes) error { return nil }

// Evict is the genuine one, recorded where it succeeds.
func (c *cluster) Evict(task *api.TaskInfo, reason string) error {
	err := c.SchedulerCache.Evict(task, reason)
	if err == nil {
		c.recorder.evicted(task, reason)
	}
	return err
}

// AddBindTask is the genuine one, recorded where it succeeds.
func (c *cluster) AddBindTask(task *api.TaskInfo) error {
	err := c.SchedulerCache.AddBindTask(task)
	if err == nil {
		c.recorder.bound(task)
	}
	return err
}

// UpdateJobStatus is the genuine one, once the pod group's status is recorded.
func (c *cluster) UpdateJobStatus(job *api.JobInfo, updated bool) (*api.JobInfo, error) {
	c.recorder.closed(job)
	return c.SchedulerCache.UpdateJobStatus(job, updated)
}

// UpdateQueueStatus writes nothing.
func (c *cluster) UpdateQueueStatus(*api.QueueInfo) error { return nil }

// phaseOf is the phase of a job's pod group.
func phaseOf(job *api.JobInfo) scheduling.PodGroupPhase { return job.PodGroup.Status.Phase }
