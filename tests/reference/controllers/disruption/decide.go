//go:build overlay

package disruption

import (
	"context"
	"encoding/json"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
	appslisters "k8s.io/client-go/listers/apps/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/workqueue"
	testclock "k8s.io/utils/clock/testing"
)

type state struct {
	Now          time.Time                   `json:"now"`
	Budget       *policy.PodDisruptionBudget `json:"budget"`
	Pods         []*v1.Pod                   `json:"pods"`
	ReplicaSets  []*apps.ReplicaSet          `json:"replicaSets"`
	Deployments  []*apps.Deployment          `json:"deployments"`
	StatefulSets []*apps.StatefulSet         `json:"statefulSets"`
}

// Decide says which status a budget gets. Owners of other kinds than those above have no scale here.
func Decide(ctx context.Context, line []byte) (any, error) {
	var given state
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	// What is not written has not changed.
	status := &given.Budget.Status
	queue := workqueue.NewTypedDelayingQueue[string]()
	defer queue.ShutDown()
	dc := &DisruptionController{
		podLister:    corelisters.NewPodLister(indexed(given.Pods)),
		rsLister:     appslisters.NewReplicaSetLister(indexed(given.ReplicaSets)),
		dLister:      appslisters.NewDeploymentLister(indexed(given.Deployments)),
		ssLister:     appslisters.NewStatefulSetLister(indexed(given.StatefulSets)),
		rcLister:     corelisters.NewReplicationControllerLister(indexed[*v1.ReplicationController](nil)),
		clock:        testclock.NewFakeClock(given.Now),
		recorder:     &record.FakeRecorder{},
		recheckQueue: queue,
		getUpdater: func() updater {
			return func(_ context.Context, budget *policy.PodDisruptionBudget) error {
				status = &budget.Status
				return nil
			}
		},
	}
	err := dc.trySync(ctx, given.Budget)
	return status, err
}

func indexed[T any](objects []T) cache.Indexer {
	byNamespace := cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, byNamespace)
	for _, object := range objects {
		// Fails only for what has no metadata.
		_ = indexer.Add(object)
	}
	return indexer
}
