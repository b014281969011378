package main

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"
	extenderv1 "k8s.io/kube-scheduler/extender/v1"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"
	"kpreempt.io/reference/cmd/reference/fwk"
)

// watchedPreemption is the genuine DefaultPreemption plugin, kept from deleting pods: where it has a candidate, its
// PostFilter ends with success before the preemption is carried out.
type watchedPreemption struct {
	*defaultpreemption.DefaultPreemption
	evaluator *preemption.Evaluator
	victims   *nodeVictims
	// outcome is what the dry run of the pod in hand found; PostFilter goes by it.
	outcome *dryRun
}

// dryRun is what preemption finds for one pod.
type dryRun struct {
	eligible   bool
	reason     string
	potential  []fwk.NodeInfo
	candidates []preemption.Candidate
	statuses   nodeStatuses
	err        error
	// nominated are the nodes that the choice can end with. PostFilter tells the one in their middle.
	nominated []string
}

func watchPreemption(plugin fwk.Plugin, handle fwk.Handle) *watchedPreemption {
	genuine := plugin.(*defaultpreemption.DefaultPreemption)
	victims := &nodeVictims{Interface: genuine}
	return &watchedPreemption{
		DefaultPreemption: genuine,
		victims:           victims,
		evaluator:         newEvaluator(handle, victims, genuine),
	}
}

// PostFilter answers as the genuine plugin does, which is asked wherever it has nothing to evict.
func (w *watchedPreemption) PostFilter(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses fwk.NodeToStatusReader) (*fwk.PostFilterResult, *fwk.Status) {
	if w.outcome == nil || !w.outcome.eligible || len(w.outcome.candidates) == 0 {
		return w.DefaultPreemption.PostFilter(ctx, state, pod, statuses)
	}
	node := w.outcome.nominated[len(w.outcome.nominated)/2]
	return framework.NewPostFilterResultWithNominatedNode(node), w.told(ctx, state, pod, node)
}

// run asks for eligibility, the nodes where preemption might help, and the dry run on all of them.
func (w *watchedPreemption) run(ctx context.Context, state fwk.CycleState, pod *v1.Pod, statuses nodeStatuses, order []fwk.NodeInfo) *dryRun {
	outcome := &dryRun{}
	w.outcome = outcome
	outcome.eligible, outcome.reason = w.eligible(ctx, pod, statuses.Get(pod.Status.NominatedNodeName))
	if !outcome.eligible {
		return outcome
	}
	outcome.potential = inOrder(order, statuses)
	if len(outcome.potential) == 0 {
		return outcome
	}
	budgets, err := w.budgets()
	if err != nil {
		outcome.err = err
		return outcome
	}
	outcome.candidates, outcome.statuses, outcome.err = w.dryRun(
		ctx, state, pod, outcome.potential, budgets, 0, int32(len(outcome.potential)))
	return outcome
}

func (w *watchedPreemption) budgets() ([]*policyv1.PodDisruptionBudget, error) {
	return w.evaluator.PdbLister.List(labels.Everything())
}

// inOrder lists the nodes where preemption might help (those with a plain Unschedulable status) in the order of the
// snapshot. The genuine code walks a map here, except where PreFilter rejected the pod on every node.
func inOrder(order []fwk.NodeInfo, statuses nodeStatuses) []fwk.NodeInfo {
	var potential []fwk.NodeInfo
	for _, node := range order {
		if statuses.Get(node.Node().Name).Code() == fwk.Unschedulable {
			potential = append(potential, node)
		}
	}
	return potential
}

// inNodeOrder lists the candidates in the order of the potential nodes. The dry run finds them in parallel, those
// without violations first.
func inNodeOrder(outcome *dryRun) []preemption.Candidate {
	place := make(map[string]int, len(outcome.potential))
	for i, node := range outcome.potential {
		place[node.Node().Name] = i
	}
	ordered := slices.Clone(outcome.candidates)
	slices.SortFunc(ordered, func(a, b preemption.Candidate) int { return place[a.Name()] - place[b.Name()] })
	return ordered
}

// winners returns every node that the choice between candidates can end with: those that no rule tells apart. A missing
// start time is the time of the comparison, so nodes that both lack it tie. The genuine choice must be one of them.
func (w *watchedPreemption) winners(ctx context.Context, candidates []preemption.Candidate) ([]string, error) {
	if len(candidates) == 0 {
		return nil, nil
	}
	now := time.Now()
	var best choiceKey
	var names []string
	for _, candidate := range candidates {
		key := keyOf(candidate.Victims(), now)
		switch {
		case len(names) == 0 || key.better(best):
			best, names = key, []string{candidate.Name()}
		case key == best:
			names = append(names, candidate.Name())
		}
	}
	chosen := w.evaluator.SelectCandidate(ctx, candidates).Name()
	for _, name := range names {
		if name == chosen {
			return names, nil
		}
	}
	return nil, fmt.Errorf("the genuine choice is %s, not one of %v", chosen, names)
}

// choiceKey holds what the rules of the choice compare, in their order; higher is better in each.
type choiceKey [5]int64

func keyOf(victims *extenderv1.Victims, now time.Time) choiceKey {
	highest := corev1helpers.PodPriority(victims.Pods[0])
	var sum int64
	top := highest
	var earliest time.Time
	for i, pod := range victims.Pods {
		priority := corev1helpers.PodPriority(pod)
		sum += int64(priority) + int64(math.MaxInt32) + 1
		started := now
		if pod.Status.StartTime != nil {
			started = pod.Status.StartTime.Time
		}
		if i == 0 || priority > top || (priority == top && started.Before(earliest)) {
			top, earliest = priority, started
		}
	}
	return choiceKey{-victims.NumPDBViolations, -int64(highest), -sum, -int64(len(victims.Pods)), earliest.UnixNano()}
}

func (k choiceKey) better(other choiceKey) bool {
	for rule := range k {
		if k[rule] != other[rule] {
			return k[rule] > other[rule]
		}
	}
	return false
}

// nodeVictims is the genuine victim selection, which can remember its answers for searches that come by the same node
// many times. A panic in it becomes an error of the node.
type nodeVictims struct {
	preemption.Interface
	remembered map[string]victimsAnswer
}

type victimsAnswer struct {
	pods       []*v1.Pod
	violations int
	status     *fwk.Status
}

// remember answers from memory, or finds the answer.
func (n *nodeVictims) remember(node fwk.NodeInfo, find func() ([]*v1.Pod, int, *fwk.Status)) (pods []*v1.Pod, violations int, status *fwk.Status) {
	name := node.Node().Name
	if answer, known := n.remembered[name]; known {
		return answer.pods, answer.violations, answer.status
	}
	defer func() {
		if problem := recover(); problem != nil {
			pods, violations, status = nil, 0, fwk.AsStatus(fmt.Errorf("panic on node %s: %v", name, problem))
		}
		if n.remembered != nil {
			n.remembered[name] = victimsAnswer{pods, violations, status}
		}
	}()
	return find()
}
