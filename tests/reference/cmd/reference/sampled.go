package main

import (
	"fmt"
	"strconv"

	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
)

// sampled is the outcome of the scheduler's search for candidates from given starts: it looks at the potential nodes
// one after the other and stops when it has enough.
type sampled struct {
	// NumCandidates is how many candidates the search wants.
	NumCandidates int32 `json:"numCandidates"`
	// Starts lists, per start, the nodes that the choice can end with.
	Starts []sampledStart `json:"starts"`
}

type sampledStart struct {
	Offset     int32    `json:"offset"`
	Candidates int      `json:"candidates"`
	Chosen     []string `json:"chosen"`
}

// offsets is the value of the option: one start, or all of them.
type offsets struct {
	given bool
	all   bool
	one   int32
}

func (o *offsets) String() string { return "" }

func (o *offsets) Set(text string) error {
	if text == "all" {
		*o = offsets{given: true, all: true}
		return nil
	}
	start, err := strconv.ParseInt(text, 10, 32)
	if err != nil || start < 0 {
		return fmt.Errorf("%q is neither a number from 0 on nor all", text)
	}
	*o = offsets{given: true, one: int32(start)}
	return nil
}

// search repeats the genuine search for the last decision's pod from the wanted starts. It must run with a parallelism
// of one. The victims on a node are the same from every start, so they are worked out once.
func (d *decision) search(wanted offsets, result *verdict) error {
	watched := d.preemption()
	if watched == nil || result.Eligibility == nil || len(result.PotentialNodes) == 0 {
		return nil
	}
	potential := inOrder(d.session.nodes, d.statuses)
	budgets, err := watched.budgets()
	if err != nil {
		return err
	}
	count := int32(len(potential))
	_, enough := watched.GetOffsetAndNumCandidates(count)
	result.Sampled = &sampled{NumCandidates: enough}
	result.Odds = map[string]float64{}
	watched.victims.remembered = map[string]victimsAnswer{}
	defer func() { watched.victims.remembered = nil }()
	for offset := range count {
		if !wanted.all && offset != wanted.one%count {
			continue
		}
		var found []preemption.Candidate
		found, _, err = watched.dryRun(d.ctx, d.state, d.pod, potential, budgets, offset, enough)
		if err != nil && len(found) == 0 {
			return err
		}
		chosen, err := watched.winners(d.ctx, found)
		if err != nil {
			return err
		}
		result.Sampled.Starts = append(result.Sampled.Starts, sampledStart{offset, len(found), chosen})
		for _, node := range chosen {
			result.Odds[node] += 1 / float64(len(chosen))
		}
	}
	return nil
}
