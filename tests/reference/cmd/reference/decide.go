package main

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/names"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// decision runs one scheduling cycle of the genuine framework, step by step, for one pod.
type decision struct {
	session    *session
	scheduling framework.Framework
	pod        *v1.Pod
	ctx        context.Context

	state     fwk.CycleState
	statuses  nodeStatuses
	diagnosis framework.Diagnosis
	restrict  *fwk.PreFilterResult
	rejected  *fwk.Status
	feasible  []fwk.NodeInfo
}

// decide places the pod and says what the scheduler found. The error is one with which the scheduling cycle ends, or
// says why no cycle is run for the pod. The searches that are wanted besides follow.
func (s *session) decide(pod *v1.Pod, wanted options) (*verdict, error) {
	d, gate, err := s.begin(pod)
	if err != nil {
		return nil, err
	}
	if gate != nil {
		return &verdict{PreEnqueue: gate, FeasibleNodes: []string{}}, nil
	}
	if err := s.pods.Update(pod); err != nil {
		return nil, err
	}
	if len(s.nodes) == 0 {
		return &verdict{FeasibleNodes: []string{}, Message: scheduler.ErrNoNodesAvailable.Error()}, nil
	}
	if err := d.preFilter(); err != nil {
		return nil, err
	}
	if err := d.filter(); err != nil {
		return nil, err
	}
	result := d.filterVerdict()
	if len(d.feasible) > 0 {
		if err := d.score(result); err != nil {
			return nil, err
		}
		if wanted.starts {
			return result, d.scoreFromEveryStart(result)
		}
		return result, nil
	}
	if err := d.preempt(result); err != nil {
		return nil, err
	}
	if wanted.offsets.given {
		if err := d.search(wanted.offsets, result); err != nil {
			return nil, err
		}
	}
	if wanted.draws > 0 {
		return result, d.draw(wanted.draws, result)
	}
	return result, nil
}

// begin finds the pod's profile, and what keeps the pod out of the queue.
func (s *session) begin(pod *v1.Pod) (*decision, *status, error) {
	scheduling, found := s.profiles[pod.Spec.SchedulerName]
	switch {
	case !found:
		return nil, nil, fmt.Errorf("profile not found for scheduler name %q", pod.Spec.SchedulerName)
	case pod.Spec.NodeName != "":
		return nil, nil, fmt.Errorf("pod %s is assigned to node %s", fullName(pod), pod.Spec.NodeName)
	case finished(pod):
		return nil, nil, fmt.Errorf("pod %s is finished", fullName(pod))
	case pod.DeletionTimestamp != nil:
		return nil, nil, fmt.Errorf("skip schedule deleting pod: %s", fullName(pod))
	}
	d := &decision{session: s, scheduling: scheduling, pod: pod, ctx: klog.NewContext(context.Background(), klog.Logger{})}
	for _, plugin := range scheduling.PreEnqueuePlugins() {
		if gate := plugin.PreEnqueue(d.ctx, pod); !gate.IsSuccess() {
			blocked := statusOf(gate.WithPlugin(plugin.Name()))
			return nil, &blocked, nil
		}
	}
	return d, nil, nil
}

// preFilter starts the cycle. A rejection of the pod counts for every node.
func (d *decision) preFilter() error {
	d.state = framework.NewCycleState()
	d.state.Write(framework.PodsToActivateKey, framework.NewPodsToActivate())
	d.statuses = newStatuses()
	d.diagnosis = diagnosisOf(d.statuses)
	restrict, outcome, restrictedBy := runPreFilterPlugins(d.ctx, d.scheduling, d.state, d.pod)
	d.diagnosis.UnschedulablePlugins = restrictedBy
	switch {
	case outcome.IsSuccess():
		d.restrict = restrict
		if !restrict.AllNodes() {
			rejectOthers(d.statuses, restrictedBy)
		}
	case outcome.IsRejected():
		d.rejected = outcome
		rejectAll(d.statuses, d.session.nodes, outcome)
		d.diagnosis.PreFilterMsg = outcome.Message()
		d.diagnosis.AddPluginStatus(outcome)
	default:
		return outcome.AsError()
	}
	return nil
}

// filter runs the filters on every node that PreFilter left.
func (d *decision) filter() error {
	if d.rejected != nil {
		return nil
	}
	var nodes []fwk.NodeInfo
	for _, node := range d.session.nodes {
		if d.restrict.AllNodes() || d.restrict.NodeNames.Has(node.Node().Name) {
			nodes = append(nodes, node)
		}
	}
	statuses := make([]*fwk.Status, len(nodes))
	d.scheduling.Parallelizer().Until(d.ctx, len(nodes), func(i int) {
		statuses[i] = d.filterNode(nodes[i])
	}, "Filter")
	d.feasible = nil
	var failures []error
	for i, node := range nodes {
		switch {
		case statuses[i].IsSuccess():
			d.feasible = append(d.feasible, node)
		case statuses[i].IsRejected():
			d.statuses.Set(node.Node().Name, statuses[i])
			d.diagnosis.AddPluginStatus(statuses[i])
		default:
			failures = append(failures, statuses[i].AsError())
		}
	}
	if len(failures) > 0 {
		return failures[0]
	}
	return nil
}

func (d *decision) filterNode(node fwk.NodeInfo) (result *fwk.Status) {
	defer func() {
		if problem := recover(); problem != nil {
			result = fwk.AsStatus(fmt.Errorf("panic on node %s: %v", node.Node().Name, problem))
		}
	}()
	if !d.scheduling.HasFilterPlugins() {
		return nil
	}
	return d.scheduling.RunFilterPluginsWithNominatedPods(d.ctx, d.state, d.pod, node)
}

func (d *decision) filterVerdict() *verdict {
	result := &verdict{Filter: map[string]status{}, FeasibleNodes: nodeNames(d.feasible)}
	if d.rejected != nil {
		rejection := statusOf(d.rejected)
		result.PreFilter = &rejection
	}
	for _, node := range d.session.nodes {
		result.Filter[node.Node().Name] = statusOf(d.statuses.Get(node.Node().Name))
	}
	for _, node := range d.feasible {
		name := node.Node().Name
		result.Filter[name] = statusOf(nil)
		result.NominatedNodeFits = result.NominatedNodeFits || name == d.pod.Status.NominatedNodeName
	}
	return result
}

// score scores the feasible nodes. With a single one the scheduler wouldn't, but its scores are defined all the same.
func (d *decision) score(result *verdict) error {
	scores, err := d.runScores()
	if err != nil {
		return err
	}
	result.Scores = map[string]int64{}
	result.PluginScores = map[string]map[string]int64{}
	for i, node := range scores {
		result.Scores[node.Name] = node.TotalScore
		byPlugin := map[string]int64{}
		for _, score := range node.Scores {
			byPlugin[score.Name] = score.Score
		}
		result.PluginScores[node.Name] = byPlugin
		switch best := result.ChosenNodes; {
		case i == 0 || node.TotalScore > result.Scores[best[0]]:
			result.ChosenNodes = []string{node.Name}
		case node.TotalScore == result.Scores[best[0]]:
			result.ChosenNodes = append(best, node.Name)
		}
	}
	return nil
}

func (d *decision) runScores() ([]fwk.NodePluginScores, error) {
	if !d.scheduling.HasScorePlugins() {
		var equal []fwk.NodePluginScores
		for _, node := range d.feasible {
			equal = append(equal, fwk.NodePluginScores{Name: node.Node().Name, TotalScore: 1})
		}
		return equal, nil
	}
	if outcome := d.scheduling.RunPreScorePlugins(d.ctx, d.state, d.pod, scored(d.feasible)); !outcome.IsSuccess() {
		return nil, outcome.AsError()
	}
	scores, outcome := d.scheduling.RunScorePlugins(d.ctx, d.state, d.pod, scored(d.feasible))
	if !outcome.IsSuccess() {
		return nil, outcome.AsError()
	}
	return scores, nil
}

// preempt runs the dry run where the profile preempts, and every PostFilter plugin for the message.
func (d *decision) preempt(result *verdict) error {
	if watched := d.preemption(); watched != nil {
		outcome := watched.run(d.ctx, d.state, d.pod, d.statuses, d.session.nodes)
		defer func() { watched.outcome = nil }()
		result.Eligibility = &eligibility{Eligible: outcome.eligible, Reason: outcome.reason}
		result.PotentialNodes = nodeNames(outcome.potential)
		for _, found := range inNodeOrder(outcome) {
			result.Candidates = append(result.Candidates, candidateOf(found))
		}
		if outcome.statuses != nil {
			result.DryRun = map[string]status{}
			outcome.statuses.ForEachExplicitNode(func(node string, failed *fwk.Status) {
				result.DryRun[node] = statusOf(failed)
			})
		}
		winners, err := watched.winners(d.ctx, inNodeOrder(outcome))
		if err != nil {
			return err
		}
		outcome.nominated, result.NominatedNodes = winners, winners
		// The plugins before DefaultPreemption see no dry run: DynamicResources notes in the state what its filter found.
		// Of a pod without claims a second look may have another result, where the order of a map decides.
		if len(d.pod.Spec.ResourceClaims) > 0 {
			if err := errors.Join(d.preFilter(), d.filter()); err != nil {
				return err
			}
		}
	}
	return d.message(result)
}

// message puts together the text of the FailedScheduling event.
func (d *decision) message(result *verdict) error {
	fitError := &framework.FitError{Pod: d.pod, NumAllNodes: len(d.session.nodes), Diagnosis: d.diagnosis}
	if d.scheduling.HasPostFilterPlugins() {
		_, outcome := d.scheduling.RunPostFilterPlugins(d.ctx, d.state, d.pod, readable(d.statuses))
		fitError.Diagnosis.PostFilterMsg = outcome.Message()
	}
	result.Message = fitError.Error()
	if result.Message == "" {
		return errors.New("no message")
	}
	return nil
}

// preemption is the profile's DefaultPreemption, nil where its PostFilter is disabled.
func (d *decision) preemption() *watchedPreemption {
	for _, plugin := range d.scheduling.ListPlugins().PostFilter.Enabled {
		if plugin.Name == names.DefaultPreemption {
			return d.session.preemption[d.scheduling.ProfileName()]
		}
	}
	return nil
}
