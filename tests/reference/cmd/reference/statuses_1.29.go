//go:build before1.32

package main

import (
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// nodeStatuses says of nodes why they don't fit. It is the scheduler's map, with the methods of later versions.
type nodeStatuses framework.NodeToStatusMap

func newStatuses() nodeStatuses { return nodeStatuses{} }

// Get returns for a node of which nothing is noted what preemption implies by that.
func (n nodeStatuses) Get(node string) *fwk.Status {
	if status, ok := n[node]; ok {
		return status
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable)
}

func (n nodeStatuses) Set(node string, status *fwk.Status) { n[node] = status }

func (n nodeStatuses) ForEachExplicitNode(see func(node string, status *fwk.Status)) {
	for node, status := range n {
		see(node, status)
	}
}

func diagnosisOf(statuses nodeStatuses) framework.Diagnosis {
	return framework.Diagnosis{NodeToStatusMap: framework.NodeToStatusMap(statuses)}
}

func readable(statuses nodeStatuses) fwk.NodeToStatusReader {
	return framework.NodeToStatusMap(statuses)
}

// rejectAll notes that PreFilter rejected the pod on all nodes.
func rejectAll(statuses nodeStatuses, nodes []fwk.NodeInfo, outcome *fwk.Status) {
	for _, node := range nodes {
		statuses[node.Node().Name] = outcome
	}
}

// rejectOthers does nothing: nothing is noted of the nodes that PreFilter doesn't leave.
func rejectOthers(nodeStatuses, sets.Set[string]) {}

func anew(nodeStatuses) nodeStatuses { return newStatuses() }

// potentialNodes lists the nodes where preemption might help, as the genuine search does.
func (d *decision) potentialNodes(statuses nodeStatuses) ([]fwk.NodeInfo, error) {
	return inOrder(d.session.nodes, statuses), nil
}
