//go:build !before1.32

package main

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// nodeStatuses says of every node why it doesn't fit.
type nodeStatuses = *framework.NodeToStatus

func newStatuses() nodeStatuses { return framework.NewDefaultNodeToStatus() }

func diagnosisOf(statuses nodeStatuses) framework.Diagnosis {
	return framework.Diagnosis{NodeToStatus: statuses}
}

func readable(statuses nodeStatuses) fwk.NodeToStatusReader { return statuses }

// rejectAll notes that PreFilter rejected the pod on all nodes.
func rejectAll(statuses nodeStatuses, _ []fwk.NodeInfo, outcome *fwk.Status) {
	statuses.SetAbsentNodesStatus(outcome)
}

// rejectOthers notes that PreFilter left only some nodes.
func rejectOthers(statuses nodeStatuses, restrictedBy sets.Set[string]) {
	statuses.SetAbsentNodesStatus(fwk.NewStatus(fwk.UnschedulableAndUnresolvable,
		fmt.Sprintf("node(s) didn't satisfy plugin(s) %v", sets.List(restrictedBy))))
}

// anew returns empty statuses that say the same of all nodes without one of their own.
func anew(statuses nodeStatuses) nodeStatuses {
	empty := newStatuses()
	empty.SetAbsentNodesStatus(statuses.AbsentNodesStatus())
	return empty
}

// potentialNodes lists the nodes where preemption might help, as the genuine search does.
func (d *decision) potentialNodes(statuses nodeStatuses) ([]fwk.NodeInfo, error) {
	return statuses.NodesForStatusCode(d.scheduling.SnapshotSharedLister().NodeInfos(), fwk.Unschedulable)
}
