package main

import (
	v1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// verdict is what the scheduler decided, in the keys of the conformance data.
type verdict struct {
	// PreEnqueue is there only where the pod never enters the queue; nothing else is then.
	PreEnqueue *status           `json:"preEnqueue,omitempty"`
	PreFilter  *status           `json:"preFilter,omitempty"`
	Filter     map[string]status `json:"filter,omitempty"`
	// NominatedNodeFits says that the pod's nominated node passes the filters: the scheduler takes it without a look
	// at the others. FeasibleNodes, scores and ChosenNodes are those of a pod without a nomination all the same.
	NominatedNodeFits bool                        `json:"nominatedNodeFits,omitempty"`
	FeasibleNodes     []string                    `json:"feasibleNodes"`
	Scores            map[string]int64            `json:"scores,omitempty"`
	PluginScores      map[string]map[string]int64 `json:"pluginScores,omitempty"`
	ChosenNodes       []string                    `json:"chosenNodes,omitempty"`
	Eligibility       *eligibility                `json:"eligibility,omitempty"`
	PotentialNodes    []string                    `json:"potentialNodes,omitempty"`
	DryRun            map[string]status           `json:"dryRun,omitempty"`
	Candidates        []candidate                 `json:"candidates,omitempty"`
	NominatedNodes    []string                    `json:"nominatedNodes,omitempty"`
	Message           string                      `json:"message,omitempty"`
	Sampled           *sampled                    `json:"sampled,omitempty"`
	Odds              map[string]float64          `json:"odds,omitempty"`
	Drawn             *drawn                      `json:"drawn,omitempty"`
	Starts            []scoredStart               `json:"starts,omitempty"`
}

// status is a node's answer from the framework. Reasons of one status keep the framework's order.
type status struct {
	Code    string   `json:"code"`
	Plugin  string   `json:"plugin,omitempty"`
	Reasons []string `json:"reasons,omitempty"`
}

type eligibility struct {
	Eligible bool   `json:"eligible"`
	Reason   string `json:"reason,omitempty"`
}

// candidate is a node on which preemption makes room; victims are namespace/name, most important first.
type candidate struct {
	Node             string   `json:"node"`
	Victims          []string `json:"victims"`
	NumPDBViolations int64    `json:"numPDBViolations"`
}

func statusOf(from *fwk.Status) status {
	if from == nil {
		return status{Code: fwk.Success.String()}
	}
	return status{Code: from.Code().String(), Plugin: from.Plugin(), Reasons: from.Reasons()}
}

func candidateOf(from preemption.Candidate) candidate {
	result := candidate{Node: from.Name(), NumPDBViolations: from.Victims().NumPDBViolations}
	for _, pod := range from.Victims().Pods {
		result.Victims = append(result.Victims, fullName(pod))
	}
	return result
}

func fullName(pod *v1.Pod) string { return pod.Namespace + "/" + pod.Name }

func nodeNames(nodes []fwk.NodeInfo) []string {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.Node().Name)
	}
	return names
}
