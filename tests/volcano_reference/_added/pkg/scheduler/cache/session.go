package cache

import (
	"time"

	schedulingv1 "k8s.io/api/scheduling/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"

	schedulingapi "volcano.sh/volcano/pkg/scheduler/api"
	volumescheduling "volcano.sh/volcano/pkg/scheduler/capabilities/volumebinding"
)

// Outside is everything that a cache has from outside the scheduler.
type Outside struct {
	Client        *kubernetes.Clientset
	Informers     informers.SharedInformerFactory
	Recorder      record.EventRecorder
	Evictor       Evictor
	StatusUpdater StatusUpdater
	VolumeBinder  VolumeBinder
}

// NewInMemory returns an empty cache that reads nothing by itself. It takes up to pods binds.
func NewInMemory(outside Outside, schedulerName, defaultQueue string, pods int) *SchedulerCache {
	return &SchedulerCache{
		Jobs:                make(map[schedulingapi.JobID]*schedulingapi.JobInfo),
		Nodes:               make(map[string]*schedulingapi.NodeInfo),
		Queues:              make(map[schedulingapi.QueueID]*schedulingapi.QueueInfo),
		PriorityClasses:     make(map[string]*schedulingv1.PriorityClass),
		NamespaceCollection: make(map[string]*schedulingapi.NamespaceCollection),
		CSINodesStatus:      make(map[string]*schedulingapi.CSINodeStatusInfo),
		imageStates:         make(map[string]*imageState),
		errTasks:            workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter()),
		DeletedJobs:         workqueue.NewRateLimitingQueue(workqueue.DefaultControllerRateLimiter()),
		schedulerNames:      []string{schedulerName},
		defaultQueue:        defaultQueue,
		kubeClient:          outside.Client,
		informerFactory:     outside.Informers,
		Recorder:            outside.Recorder,
		Evictor:             outside.Evictor,
		StatusUpdater:       outside.StatusUpdater,
		VolumeBinder:        outside.VolumeBinder,
		BindFlowChannel:     make(chan *schedulingapi.TaskInfo, pods),
	}
}

// NewVolumeBinder returns the scheduler's own one. The informers are to be started afterwards.
func NewVolumeBinder(client kubernetes.Interface, factory informers.SharedInformerFactory) VolumeBinder {
	core, storage := factory.Core().V1(), factory.Storage().V1()
	return &defaultVolumeBinder{volumeBinder: volumescheduling.NewVolumeBinder(
		client, core.Pods(), core.Nodes(), storage.CSINodes(), core.PersistentVolumeClaims(), core.PersistentVolumes(),
		storage.StorageClasses(), nil, 30*time.Second,
	)}
}
