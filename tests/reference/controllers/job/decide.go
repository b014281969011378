//go:build overlay

package job

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller"
	testclock "k8s.io/utils/clock/testing"
)

type state struct {
	Now  time.Time  `json:"now"`
	Job  *batch.Job `json:"job"`
	Pods []*v1.Pod  `json:"pods"`
	// What the running controller remembers of the time before.
	FailuresInARow int32      `json:"failuresInARow"`
	LastFailure    *time.Time `json:"lastFailure"`
}

// Notes whose finalizer is taken off, for which the controller patches pods, several at a time.
type podControl struct {
	controller.FakePodControl
	mu       sync.Mutex
	released []string
}

func (c *podControl) PatchPod(_ context.Context, _, name string, _ []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.released = append(c.released, name)
	return nil
}

// Notes after how many seconds the controller wants to look again.
type queue struct {
	workqueue.TypedRateLimitingInterface[string]
	after []float64
}

func (q *queue) AddAfter(_ string, wait time.Duration) { q.after = append(q.after, wait.Seconds()) }

// Decide says which pods a Job creates, by their index, deletes and releases, its status, and when it looks again.
func Decide(ctx context.Context, line []byte) (any, error) {
	var given state
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	client := fake.NewSimpleClientset()
	shared := informers.NewSharedInformerFactory(client, 0)
	pods, jobs := shared.Core().V1().Pods(), shared.Batch().V1().Jobs()
	jm, err := newControllerWithClock(ctx, client, testclock.NewFakeClock(given.Now), pods, jobs, nil, nil)
	if err != nil {
		return nil, err
	}
	defer jm.broadcaster.Shutdown()
	defer jm.orphanQueue.ShutDown()
	defer jm.queue.ShutDown()
	made, waits := &podControl{}, &queue{TypedRateLimitingInterface: jm.queue}
	jm.recorder, jm.podControl, jm.queue = &record.FakeRecorder{}, made, waits
	// What is not written has not changed.
	status := &given.Job.Status
	jm.updateStatusHandler = func(_ context.Context, job *batch.Job) (*batch.Job, error) {
		status = job.Status.DeepCopy()
		return job, nil
	}
	key, err := cache.MetaNamespaceKeyFunc(given.Job)
	if err != nil {
		return nil, err
	}
	if given.FailuresInARow > 0 {
		failures := backoffRecord{
			key:                      key,
			failuresAfterLastSuccess: given.FailuresInARow,
			lastFailureTime:          given.LastFailure,
		}
		if err := jm.podBackoffStore.updateBackoffRecord(failures); err != nil {
			return nil, err
		}
	}
	if err := jobs.Informer().GetIndexer().Add(given.Job); err != nil {
		return nil, err
	}
	for _, pod := range given.Pods {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(given.Job, controllerKind)}
		if err := pods.Informer().GetIndexer().Add(pod); err != nil {
			return nil, err
		}
	}
	if err := jm.syncJob(ctx, key); err != nil {
		return nil, err
	}
	created := []string{}
	for _, template := range made.Templates {
		created = append(created, template.Annotations[batch.JobCompletionIndexAnnotation])
	}
	return map[string]any{
		"created":  created,
		"deleted":  append([]string{}, made.DeletePodName...),
		"released": append([]string{}, made.released...),
		"status":   status,
		"after":    append([]float64{}, waits.after...),
	}, nil
}
