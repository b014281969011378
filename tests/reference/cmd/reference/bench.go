package main

import (
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// timings are medians over the runs, in seconds. DryRun and Choice are there where preemption is tried, Score where the
// pod fits.
type timings struct {
	Runs           int     `json:"runs"`
	Parallelism    int     `json:"parallelism"`
	Nodes          int     `json:"nodes"`
	FeasibleNodes  int     `json:"feasibleNodes"`
	PotentialNodes int     `json:"potentialNodes"`
	Candidates     int     `json:"candidates"`
	PreFilter      float64 `json:"preFilter"`
	Filter         float64 `json:"filter"`
	Score          float64 `json:"score"`
	DryRun         float64 `json:"dryRun"`
	Choice         float64 `json:"choice"`
}

// bench times the steps of the scheduling cycle for a pod: PreFilter, the filters on all nodes, then the scores, or the
// dry run on all potential nodes and the choice.
func (s *session) bench(pod *v1.Pod, runs, parallelism int) (*timings, error) {
	d, gate, err := s.begin(pod)
	if err != nil || gate != nil {
		return nil, err
	}
	if err := s.pods.Update(pod); err != nil {
		return nil, err
	}
	result := &timings{Runs: runs, Parallelism: parallelism, Nodes: len(s.nodes)}
	var preFilter, filter, score, dryRun, choice []float64
	for range runs {
		start := time.Now()
		if err := d.preFilter(); err != nil {
			return nil, err
		}
		start = lap(&preFilter, start)
		if err := d.filter(); err != nil {
			return nil, err
		}
		start = lap(&filter, start)
		result.FeasibleNodes = len(d.feasible)
		if len(d.feasible) > 0 {
			if _, err := d.runScores(); err != nil {
				return nil, err
			}
			lap(&score, start)
			continue
		}
		watched := d.preemption()
		if watched == nil {
			continue
		}
		outcome := watched.run(d.ctx, d.state, d.pod, d.statuses, s.nodes)
		start = lap(&dryRun, start)
		if len(outcome.candidates) > 0 {
			watched.evaluator.SelectCandidate(d.ctx, outcome.candidates)
			lap(&choice, start)
		}
		result.PotentialNodes, result.Candidates = len(outcome.potential), len(outcome.candidates)
		watched.outcome = nil
	}
	result.PreFilter, result.Filter, result.Score = median(preFilter), median(filter), median(score)
	result.DryRun, result.Choice = median(dryRun), median(choice)
	return result, nil
}

// lap adds the seconds since start and returns the time of now.
func lap(laps *[]float64, start time.Time) time.Time {
	now := time.Now()
	*laps = append(*laps, now.Sub(start).Seconds())
	return now
}

func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
