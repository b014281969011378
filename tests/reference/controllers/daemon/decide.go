//go:build overlay

package daemon

import (
	"context"
	"encoding/json"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/kubernetes/pkg/controller"
	testclock "k8s.io/utils/clock/testing"
)

type state struct {
	Now       time.Time       `json:"now"`
	DaemonSet *apps.DaemonSet `json:"daemonSet"`
	Pods      []*v1.Pod       `json:"pods"`
	Nodes     []*v1.Node      `json:"nodes"`
	Revision  string          `json:"revision"`
}

// Decide says which pods a DaemonSet creates, by their nodes, and deletes. An update goes on only where every node has
// its pod: the running controller waits in between until it has seen its own changes.
func Decide(ctx context.Context, line []byte) (any, error) {
	var given state
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	pods := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{
		cache.NamespaceIndex:          cache.MetaNamespaceIndexFunc,
		controller.PodControllerIndex: byController,
	})
	for _, pod := range given.Pods {
		if err := pods.Add(pod); err != nil {
			return nil, err
		}
	}
	nodes := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for _, node := range given.Nodes {
		if err := nodes.Add(node); err != nil {
			return nil, err
		}
	}
	made := &controller.FakePodControl{}
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[string]())
	defer queue.ShutDown()
	dsc := &DaemonSetsController{
		podControl:        made,
		podIndexer:        pods,
		podLister:         corelisters.NewPodLister(pods),
		nodeLister:        corelisters.NewNodeLister(nodes),
		burstReplicas:     BurstReplicas,
		eventRecorder:     &record.FakeRecorder{},
		expectations:      controller.NewControllerExpectations(),
		queue:             queue,
		failedPodsBackoff: flowcontrol.NewFakeBackOff(time.Second, time.Minute, testclock.NewFakeClock(given.Now)),
	}
	if err := dsc.manage(ctx, given.DaemonSet, given.Nodes, given.Revision); err != nil {
		return nil, err
	}
	isRolling := given.DaemonSet.Spec.UpdateStrategy.Type == apps.RollingUpdateDaemonSetStrategyType
	isUpdate := isRolling && len(made.Templates) == 0 && len(made.DeletePodName) == 0
	if isUpdate {
		if err := dsc.rollingUpdate(ctx, given.DaemonSet, given.Nodes, given.Revision); err != nil {
			return nil, err
		}
	}
	created := []string{}
	for _, template := range made.Templates {
		required := template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution
		created = append(created, required.NodeSelectorTerms[0].MatchFields[0].Values[0])
	}
	deleted := append([]string{}, made.DeletePodName...)
	return map[string]any{"created": created, "deleted": deleted, "isUpdate": isUpdate}, nil
}

func byController(object any) ([]string, error) {
	pod := object.(*v1.Pod)
	return []string{controller.PodControllerIndexKey(pod.Namespace, &pod.OwnerReferences[0])}, nil
}
