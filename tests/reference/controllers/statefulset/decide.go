//go:build overlay

package statefulset

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/record"
	"k8s.io/kubernetes/pkg/features"
	"k8s.io/utils/lru"
)

type state struct {
	Now               time.Time         `json:"now"`
	StatefulSet       *apps.StatefulSet `json:"statefulSet"`
	Pods              []*v1.Pod         `json:"pods"`
	CurrentRevision   string            `json:"currentRevision"`
	UpdateRevision    string            `json:"updateRevision"`
	HasMaxUnavailable bool              `json:"hasMaxUnavailable"`
}

// One pod that is created, or one that is deleted.
type action struct {
	Created  string `json:"created,omitempty"`
	Revision string `json:"revision,omitempty"`
	Deleted  string `json:"deleted,omitempty"`
}

var errNone = errors.New("there is none")

// Stands in for the API server. Sets that work in parallel call it so.
type objects struct {
	mu      sync.Mutex
	actions []action
}

func (o *objects) note(done action) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.actions = append(o.actions, done)
}

func (o *objects) CreatePod(_ context.Context, pod *v1.Pod, _ *apps.StatefulSet) error {
	o.note(action{Created: pod.Name, Revision: pod.Labels[apps.StatefulSetRevisionLabel]})
	return nil
}

func (o *objects) DeletePod(pod *v1.Pod) error {
	o.note(action{Deleted: pod.Name})
	return nil
}

func (o *objects) GetPod(string, string) (*v1.Pod, error)                         { return nil, errNone }
func (o *objects) UpdatePod(*v1.Pod, *apps.StatefulSet) error                     { return nil }
func (o *objects) CreateClaim(*v1.PersistentVolumeClaim, *apps.StatefulSet) error { return nil }
func (o *objects) GetClaim(string, string) (*v1.PersistentVolumeClaim, error)     { return nil, errNone }
func (o *objects) UpdateClaim(*v1.PersistentVolumeClaim, *apps.StatefulSet) error { return nil }

// Decide says which pods a StatefulSet creates and deletes, and what its status is then.
func Decide(ctx context.Context, line []byte) (any, error) {
	var given state
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	gates := map[string]bool{string(features.MaxUnavailableStatefulSet): given.HasMaxUnavailable}
	if err := utilfeature.DefaultMutableFeatureGate.SetFromMap(gates); err != nil {
		return nil, err
	}
	made := &objects{actions: []action{}}
	control := &defaultStatefulSetControl{
		podControl:            &StatefulPodControl{made, &record.FakeRecorder{}},
		revisionEqualityCache: lru.New(1),
	}
	current, update := revision(given.CurrentRevision), revision(given.UpdateRevision)
	status, err := control.updateStatefulSet(ctx, given.StatefulSet, current, update, 0, given.Pods, given.Now)
	if err != nil {
		return nil, err
	}
	completeRollingUpdate(given.StatefulSet, status)
	return map[string]any{"actions": made.actions, "status": status}, nil
}

// A revision whose template is the set's own: that of the pods is told by their labels alone.
func revision(name string) *apps.ControllerRevision {
	return &apps.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Data:       runtime.RawExtension{Raw: []byte("{}")},
	}
}
