// Cache tells in which order the scheduler's own cache has the pods of each node. It reads {"steps"} in JSON a line, puts
// the steps to a new cache, and writes {"pods"}: after each step those of every node of a snapshot, in their order.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler/backend/cache"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
)

const longestLine = 1 << 24

// A step is what a scheduler does to its cache: of a node add or remove, of a pod what the names of the methods say.
type step struct {
	Do   string
	Pod  string
	Node string
}

func podOf(s step) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: s.Pod, Namespace: "default", UID: types.UID(s.Pod)},
		Spec:       v1.PodSpec{NodeName: s.Node},
	}
}

func nodeOf(s step) *v1.Node {
	return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: s.Node}}
}

func take(logger klog.Logger, c cache.Cache, s step) error {
	switch s.Do {
	case "addNode":
		c.AddNode(logger, nodeOf(s))
	case "removeNode":
		return c.RemoveNode(logger, nodeOf(s))
	case "assume":
		return c.AssumePod(logger, podOf(s))
	case "forget":
		return c.ForgetPod(logger, podOf(s))
	case "add":
		return c.AddPod(logger, podOf(s))
	case "update":
		return c.UpdatePod(logger, podOf(s), podOf(s))
	case "remove":
		return c.RemovePod(logger, podOf(s))
	default:
		return fmt.Errorf("%q is no step", s.Do)
	}
	return nil
}

func orders(logger klog.Logger, steps []step) ([]map[string][]string, error) {
	c := cache.New(context.Background(), nil, false)
	snapshot := cache.NewEmptySnapshot()
	var told []map[string][]string
	for _, s := range steps {
		if err := take(logger, c, s); err != nil {
			return nil, err
		}
		if err := c.UpdateSnapshot(logger, snapshot); err != nil {
			return nil, err
		}
		infos, err := snapshot.NodeInfos().List()
		if err != nil {
			return nil, err
		}
		pods := map[string][]string{}
		for _, info := range infos {
			for _, pod := range info.GetPods() {
				name := info.Node().Name
				pods[name] = append(pods[name], pod.GetPod().Name)
			}
		}
		told = append(told, pods)
	}
	return told, nil
}

func run() error {
	metrics.Register()
	logger := klog.Background()
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, longestLine)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked struct{ Steps []step }
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		told, err := orders(logger, asked.Steps)
		if err != nil {
			return err
		}
		if err := out.Encode(map[string]any{"pods": told}); err != nil {
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
