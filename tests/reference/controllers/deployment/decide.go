//go:build overlay

package deployment

import (
	"context"
	"encoding/json"
	"fmt"

	apps "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/record"
	deploymentutil "k8s.io/kubernetes/pkg/controller/deployment/util"
)

type state struct {
	Deployment  *apps.Deployment        `json:"deployment"`
	ReplicaSets []*apps.ReplicaSet      `json:"replicaSets"`
	Pods        map[types.UID][]*v1.Pod `json:"pods"`
}

// A ReplicaSet that the controller wrote; the notes are the annotations with the Deployment's size.
type written struct {
	IsNew           bool   `json:"isNew"`
	Name            string `json:"name"`
	Replicas        int32  `json:"replicas"`
	DesiredReplicas string `json:"desiredReplicas"`
	MaxReplicas     string `json:"maxReplicas"`
}

// Decide says which sizes a Deployment gives its ReplicaSets.
func Decide(ctx context.Context, line []byte) (any, error) {
	var given state
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	found := []written{}
	// No tracker: statuses and events of the Deployment are of no interest, and a ReplicaSet is written once.
	client := &fake.Clientset{}
	client.AddReactor("*", "replicasets", func(action clienttesting.Action) (bool, runtime.Object, error) {
		object, ok := action.(interface{ GetObject() runtime.Object })
		if !ok {
			return true, nil, fmt.Errorf("unexpected: %s", action.GetVerb())
		}
		rs := object.GetObject().(*apps.ReplicaSet)
		found = append(found, written{
			IsNew:           action.GetVerb() == "create",
			Name:            rs.Name,
			Replicas:        *rs.Spec.Replicas,
			DesiredReplicas: rs.Annotations[deploymentutil.DesiredReplicasAnnotation],
			MaxReplicas:     rs.Annotations[deploymentutil.MaxReplicasAnnotation],
		})
		return true, rs, nil
	})
	client.AddReactor("*", "deployments", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, given.Deployment, nil
	})
	controller := &DeploymentController{client: client, eventRecorder: &record.FakeRecorder{}}
	err := controller.decide(ctx, given)
	return map[string]any{"written": found}, err
}

// As the controller goes on once it has listed the ReplicaSets and pods, but for rollbacks.
func (dc *DeploymentController) decide(ctx context.Context, given state) error {
	if given.Deployment.Spec.Paused {
		return dc.sync(ctx, given.Deployment, given.ReplicaSets)
	}
	isScaled, err := dc.isScalingEvent(ctx, given.Deployment, given.ReplicaSets)
	switch {
	case err != nil:
		return err
	case isScaled:
		return dc.sync(ctx, given.Deployment, given.ReplicaSets)
	case given.Deployment.Spec.Strategy.Type == apps.RecreateDeploymentStrategyType:
		return dc.rolloutRecreate(ctx, given.Deployment, given.ReplicaSets, given.Pods)
	default:
		return dc.rolloutRolling(ctx, given.Deployment, given.ReplicaSets)
	}
}
