package main

import (
	"math/rand"
	"reflect"
	"unsafe"

	"k8s.io/kubernetes/pkg/scheduler"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// drawn is how often the whole search for candidates ended with each node: the order of the map of statuses, the
// offset, the race of the workers and the last choice between equals are left to the genuine code.
type drawn struct {
	Runs int `json:"runs"`
	// Chosen counts the runs in which a node was chosen.
	Chosen map[string]int `json:"chosen"`
}

// draw runs the genuine search for candidates many times for the last decision's pod, with the configuration's
// parallelism. The map of statuses is made anew each time, as in each scheduling cycle. The victims on a node are the
// same each time, so they are worked out once.
func (d *decision) draw(runs int, result *verdict) error {
	watched := d.preemption()
	if watched == nil || result.Eligibility == nil || len(result.PotentialNodes) == 0 {
		return nil
	}
	budgets, err := watched.budgets()
	if err != nil {
		return err
	}
	// Sequentially, since the memory is not for several writers; from then on it is only read.
	watched.victims.remembered = map[string]victimsAnswer{}
	defer func() { watched.victims.remembered = nil }()
	for _, node := range inOrder(d.session.nodes, d.statuses) {
		if err := watched.workOut(d.ctx, d.state, d.pod, node, budgets); err != nil {
			return err
		}
	}
	result.Drawn = &drawn{Runs: runs, Chosen: map[string]int{}}
	for range runs {
		potential, err := d.potentialNodes(d.statusesAnew())
		if err != nil {
			return err
		}
		offset, enough := watched.GetOffsetAndNumCandidates(int32(len(potential)))
		found, _, err := watched.dryRun(d.ctx, d.state, d.pod, potential, budgets, offset, enough)
		if err != nil && len(found) == 0 {
			return err
		}
		if best := watched.evaluator.SelectCandidate(d.ctx, found); best != nil {
			result.Drawn.Chosen[best.Name()]++
		}
	}
	return nil
}

// statusesAnew is the map of statuses as a cycle of its own would have made it: filled in the order of the snapshot,
// from wherever the scheduler's last search ended.
func (d *decision) statusesAnew() nodeStatuses {
	statuses := anew(d.statuses)
	explicit := map[string]*fwk.Status{}
	d.statuses.ForEachExplicitNode(func(name string, status *fwk.Status) { explicit[name] = status })
	start := rand.Intn(len(d.session.nodes))
	for i := range d.session.nodes {
		name := d.session.nodes[(start+i)%len(d.session.nodes)].Node().Name
		if status, found := explicit[name]; found {
			statuses.Set(name, status)
		}
	}
	return statuses
}

// scoredStart is what comes of the search for nodes to score from one start: the nodes that it finds, and those of
// them that have the best score.
type scoredStart struct {
	Start  int      `json:"start"`
	Found  []string `json:"found"`
	Chosen []string `json:"chosen"`
}

// scoreFromEveryStart runs the genuine search for nodes to score, with the configuration's parallelism, from each node
// at which the one before may have ended, and scores what it finds.
func (d *decision) scoreFromEveryStart(result *verdict) error {
	nodes := d.session.nodes
	if !d.restrict.AllNodes() {
		// The genuine code goes through these in the order of a map.
		nodes = nil
		for name := range d.restrict.NodeNames {
			if node, err := d.scheduling.SnapshotSharedLister().NodeInfos().Get(name); err == nil {
				nodes = append(nodes, node)
			}
		}
	}
	all := d.feasible
	defer func() { d.feasible = all }()
	for start := range d.session.nodes {
		sched := &scheduler.Scheduler{}
		*unexported[int](sched, "nextStartNodeIndex") = start
		*unexported[int32](sched, "percentageOfNodesToScore") = d.session.percentage
		var err error
		if d.feasible, err = d.nodesThatPassFilters(sched, nodes); err != nil {
			return err
		}
		var scored verdict
		if err := d.score(&scored); err != nil {
			return err
		}
		result.Starts = append(result.Starts, scoredStart{start, nodeNames(d.feasible), scored.ChosenNodes})
	}
	return nil
}

// unexported is a field that the scheduler sets itself as it goes.
func unexported[T any](sched *scheduler.Scheduler, field string) *T {
	return (*T)(unsafe.Pointer(reflect.ValueOf(sched).Elem().FieldByName(field).UnsafeAddr()))
}
