// Defaults fills in what the API server would: it reads a workload in JSON a line, and writes {"manifest", "served"}.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apps "k8s.io/kubernetes/pkg/apis/apps/v1"
	batch "k8s.io/kubernetes/pkg/apis/batch/v1"
	core "k8s.io/kubernetes/pkg/apis/core/v1"
)

const longestLine = 1 << 24

type answer struct {
	Manifest json.RawMessage `json:"manifest"`
	Served   any             `json:"served"`
}

// filled gives the object of a manifest, once the function has filled in its defaults.
func filled[T any](fill func(*T)) func([]byte) (any, error) {
	return func(manifest []byte) (any, error) {
		object := new(T)
		if err := json.Unmarshal(manifest, object); err != nil {
			return nil, err
		}
		fill(object)
		return object, nil
	}
}

var kinds = map[string]func([]byte) (any, error){
	"Deployment":            filled[appsv1.Deployment](apps.SetObjectDefaults_Deployment),
	"StatefulSet":           filled[appsv1.StatefulSet](apps.SetObjectDefaults_StatefulSet),
	"DaemonSet":             filled[appsv1.DaemonSet](apps.SetObjectDefaults_DaemonSet),
	"ReplicaSet":            filled[appsv1.ReplicaSet](apps.SetObjectDefaults_ReplicaSet),
	"Job":                   filled[batchv1.Job](batch.SetObjectDefaults_Job),
	"CronJob":               filled[batchv1.CronJob](batch.SetObjectDefaults_CronJob),
	"ReplicationController": filled[corev1.ReplicationController](core.SetObjectDefaults_ReplicationController),
	"Pod":                   filled[corev1.Pod](core.SetObjectDefaults_Pod),
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		manifest := append([]byte(nil), lines.Bytes()...)
		var object struct{ Kind string }
		if err := json.Unmarshal(manifest, &object); err != nil {
			return err
		}
		fill, ok := kinds[object.Kind]
		if !ok {
			return fmt.Errorf("%q is no workload", object.Kind)
		}
		served, err := fill(manifest)
		if err != nil {
			return err
		}
		if err := out.Encode(answer{manifest, served}); err != nil {
			return err
		}
	}
	return lines.Err()
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
