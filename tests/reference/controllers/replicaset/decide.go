//go:build overlay

package replicaset

import (
	"context"
	"encoding/json"

	v1 "k8s.io/api/core/v1"
)

type state struct {
	Pods []*v1.Pod `json:"pods"`
	// The places in Pods of those that belong to any ReplicaSet of the same Deployment.
	Related []int `json:"related"`
	Surplus int   `json:"surplus"`
}

// Decide says which pods go when there are too many. The genuine code reads the clock itself.
func Decide(_ context.Context, line []byte) (any, error) {
	var given state
	if err := json.Unmarshal(line, &given); err != nil {
		return nil, err
	}
	related := make([]*v1.Pod, 0, len(given.Related))
	for _, place := range given.Related {
		related = append(related, given.Pods[place])
	}
	deleted := []string{}
	for _, pod := range getPodsToDelete(given.Pods, related, given.Surplus) {
		deleted = append(deleted, pod.Name)
	}
	return map[string]any{"deleted": deleted}, nil
}
