//go:build before1.34

package fwk

import "k8s.io/kubernetes/pkg/scheduler/framework"

type (
	CycleState         = *framework.CycleState
	Handle             = framework.Handle
	ImageStateSummary  = framework.ImageStateSummary
	NodeInfo           = *framework.NodeInfo
	NodePluginScores   = framework.NodePluginScores
	NodeToStatusReader = framework.NodeToStatusMap
	Plugin             = framework.Plugin
	PostFilterResult   = framework.PostFilterResult
	PreEnqueuePlugin   = framework.PreEnqueuePlugin
	PreFilterResult    = framework.PreFilterResult
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
func Stored(node NodeInfo) *framework.NodeInfo { return node }
