package main

import (
	"slices"
	"syscall"
	"time"

	v1 "k8s.io/api/core/v1"
)

// timings are medians over the runs, in seconds. DryRun and Choice are there where preemption is tried, Score where the
// pod fits. CPU is what all threads together spend on one run, the garbage collector's among them.
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
	CPU            float64 `json:"cpu"`
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
	var laps laps
	for range runs {
		before := cpuSeconds()
		if err := s.benchOnce(d, result, &laps); err != nil {
			return nil, err
		}
		laps.cpu = append(laps.cpu, cpuSeconds()-before)
	}
	result.PreFilter, result.Filter, result.Score = median(laps.preFilter), median(laps.filter), median(laps.score)
	result.DryRun, result.Choice, result.CPU = median(laps.dryRun), median(laps.choice), median(laps.cpu)
	return result, nil
}

// laps are the seconds of each run.
type laps struct {
	preFilter, filter, score, dryRun, choice, cpu []float64
}

// benchOnce runs a cycle once and notes what it found and took.
func (s *session) benchOnce(d *decision, result *timings, laps *laps) error {
	start := time.Now()
	if err := d.preFilter(); err != nil {
		return err
	}
	start = lap(&laps.preFilter, start)
	if err := d.filter(); err != nil {
		return err
	}
	start = lap(&laps.filter, start)
	result.FeasibleNodes = len(d.feasible)
	if len(d.feasible) > 0 {
		_, err := d.runScores()
		lap(&laps.score, start)
		return err
	}
	watched := d.preemption()
	if watched == nil {
		return nil
	}
	outcome := watched.run(d.ctx, d.state, d.pod, d.statuses, s.nodes)
	start = lap(&laps.dryRun, start)
	if len(outcome.candidates) > 0 {
		watched.evaluator.SelectCandidate(d.ctx, outcome.candidates)
		lap(&laps.choice, start)
	}
	result.PotentialNodes, result.Candidates = len(outcome.potential), len(outcome.candidates)
	watched.outcome = nil
	return nil
}

// cpuSeconds is what this process has spent so far, on all threads.
func cpuSeconds() float64 {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return (time.Duration(usage.Utime.Nano()) + time.Duration(usage.Stime.Nano())).Seconds()
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
