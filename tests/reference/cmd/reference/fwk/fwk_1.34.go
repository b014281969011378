//go:build !before1.34 && before1.35

package fwk

import (
	"k8s.io/kube-scheduler/framework"
	scheduling "k8s.io/kubernetes/pkg/scheduler/framework"
)

type (
	CycleState         = framework.CycleState
	Handle             = scheduling.Handle
	ImageStateSummary  = framework.ImageStateSummary
	NodeInfo           = framework.NodeInfo
	NodePluginScores   = scheduling.NodePluginScores
	NodeToStatusReader = scheduling.NodeToStatusReader
	Plugin             = scheduling.Plugin
	PostFilterResult   = scheduling.PostFilterResult
	PreEnqueuePlugin   = scheduling.PreEnqueuePlugin
	PreFilterResult    = scheduling.PreFilterResult
	SharedDRAManager   = scheduling.SharedDRAManager
	Status             = framework.Status
)

const (
	Success                      = framework.Success
	Unschedulable                = framework.Unschedulable
	UnschedulableAndUnresolvable = framework.UnschedulableAndUnresolvable
)

var (
	AsStatus  = framework.AsStatus
	NewStatus = framework.NewStatus
)

// Stored is the node as the scheduler's cache keeps it.
func Stored(node NodeInfo) *scheduling.NodeInfo { return node.(*scheduling.NodeInfo) }
