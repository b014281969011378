package main

import (
	"encoding/json"
	"math"

	v1 "k8s.io/api/core/v1"
	"volcano.sh/volcano/pkg/scheduler/api"
)

// verdict is what one session did.
type verdict struct {
	Opening *opening `json:"opening,omitempty"`
	Actions []action `json:"actions,omitempty"`
	Final   *final   `json:"final,omitempty"`
	// Panics says that the scheduler dies, and Panic on what; there is nothing else then.
	Panics bool   `json:"panics"`
	Panic  string `json:"panic,omitempty"`
}

type opening struct {
	state
	Scores map[string]map[string]float64 `json:"scores"`
}

// state is that of a session between actions.
type state struct {
	Jobs   map[string]job   `json:"jobs"`
	Queues map[string]queue `json:"queues"`
}

type action struct {
	Action    string      `json:"action"`
	Evictions []eviction  `json:"evictions"`
	Pipelined []placement `json:"pipelined"`
	Binds     []placement `json:"binds"`
	Allocated []placement `json:"allocated"`
	Enqueued  []string    `json:"enqueued"`
	// Trace has operation, task, node, and the task whose turn it was.
	Trace [][4]string `json:"trace"`
	state
}

type eviction struct {
	Task   string `json:"task"`
	Node   string `json:"node"`
	Reason string `json:"reason"`
	By     string `json:"by"`
}

type placement struct {
	Task string `json:"task"`
	Node string `json:"node"`
}

type job struct {
	Queue        string         `json:"queue"`
	Priority     int32          `json:"priority"`
	MinAvailable int32          `json:"minAvailable"`
	Phase        string         `json:"phase"`
	Tasks        map[string]int `json:"tasks"`
	ReadyNum     int32          `json:"readyNum"`
	WaitingNum   int32          `json:"waitingNum"`
	Valid        bool           `json:"valid"`
	Ready        bool           `json:"ready"`
	Pipelined    bool           `json:"pipelined"`
	Starving     bool           `json:"starving"`
	Allocated    amounts        `json:"allocated"`
}

type queue struct {
	Weight    int32   `json:"weight"`
	Share     float64 `json:"share"`
	Deserved  amounts `json:"deserved"`
	Allocated amounts `json:"allocated"`
	Request   amounts `json:"request"`
	Overused  bool    `json:"overused"`
}

// amounts are CPU and scalars in milli, memory in bytes; -1 stands for no limit.
type amounts struct{ *api.Resource }

// MarshalJSON implements json.Marshaler.
func (a amounts) MarshalJSON() ([]byte, error) {
	values := map[v1.ResourceName]float64{v1.ResourceCPU: a.MilliCPU, v1.ResourceMemory: a.Memory}
	for name, value := range a.ScalarResources {
		values[name] = value
	}
	for name, value := range values {
		if value == math.MaxFloat64 {
			values[name] = -1
		}
	}
	return json.Marshal(values)
}

// final is what is left when a session is closed.
type final struct {
	PodGroups map[string]podGroup          `json:"podGroups"`
	FitErrors map[string]map[string]string `json:"fitErrors"`
	// Pods has what is written to their condition PodScheduled.
	Pods map[string]podCondition `json:"pods"`
	// Events are sorted.
	Events []event `json:"events"`
}

type event struct {
	Kind    string `json:"kind"`
	Subject string `json:"subject"`
	Type    string `json:"type"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type podGroup struct {
	Phase      string      `json:"phase"`
	Conditions []condition `json:"conditions"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type podCondition struct {
	Reason  string `json:"reason"`
	Message string `json:"message"`
}
