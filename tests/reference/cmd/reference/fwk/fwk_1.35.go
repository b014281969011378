//go:build !before1.35

// Package fwk holds the types of the scheduling framework under one name, wherever a version of Kubernetes has them.
//
// Here as in the program, a file with a version in its name holds from that version on, until the next of the same
// subject.
package fwk

import (
	"k8s.io/kube-scheduler/framework"
	scheduling "k8s.io/kubernetes/pkg/scheduler/framework"
)

type (
	CycleState         = framework.CycleState
	Handle             = framework.Handle
	ImageStateSummary  = framework.ImageStateSummary
	NodeInfo           = framework.NodeInfo
	NodePluginScores   = framework.NodePluginScores
	NodeToStatusReader = framework.NodeToStatusReader
	Plugin             = framework.Plugin
	PostFilterResult   = framework.PostFilterResult
	PreEnqueuePlugin   = framework.PreEnqueuePlugin
	PreFilterResult    = framework.PreFilterResult
	SharedDRAManager   = framework.SharedDRAManager
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
