//go:build overlay

// Command controllers reads states of workloads as JSON lines and writes, one line each, what the genuine controllers
// of Kubernetes do next: {"answer"}, or {"error"} where they fail.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"k8s.io/klog/v2"

	"kpreempt.io/reference/controllers/daemon"
	"kpreempt.io/reference/controllers/deployment"
	"kpreempt.io/reference/controllers/disruption"
	"kpreempt.io/reference/controllers/job"
	"kpreempt.io/reference/controllers/replicaset"
	"kpreempt.io/reference/controllers/statefulset"
)

// The longest line that is read.
const longest = 64 << 20

// What each controller does next with the state in a line.
var controllers = map[string]func(context.Context, []byte) (any, error){
	"DaemonSet":           daemon.Decide,
	"Deployment":          deployment.Decide,
	"Job":                 job.Decide,
	"PodDisruptionBudget": disruption.Decide,
	"ReplicaSet":          replicaset.Decide,
	"StatefulSet":         statefulset.Decide,
}

func main() {
	// What controllers log about odd states is of no use here.
	klog.LogToStderr(false)
	klog.SetOutput(io.Discard)
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longest)
	answers := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		if err := answers.Encode(answer(lines.Bytes())); err != nil {
			fatal(err)
		}
	}
	if err := lines.Err(); err != nil {
		fatal(err)
	}
}

func answer(line []byte) map[string]any {
	var state struct {
		Controller string `json:"controller"`
	}
	if err := json.Unmarshal(line, &state); err != nil {
		fatal(err)
	}
	decide, ok := controllers[state.Controller]
	if !ok {
		fatal(fmt.Errorf("there is no controller %q", state.Controller))
	}
	decided, err := decide(context.Background(), line)
	if err != nil {
		return map[string]any{"error": err.Error()}
	}
	return map[string]any{"answer": decided}
}

func fatal(err error) {
	fmt.Fprintln(os.Stderr, "controllers:", err)
	os.Exit(1)
}
