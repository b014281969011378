package main

import (
	"fmt"
	"sort"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"volcano.sh/volcano/pkg/scheduler/api"
)

// recorder notes what a session does. It stands in for everything that the scheduler writes to.
type recorder struct {
	mutex sync.Mutex
	turn  string
	// evictedFor has the task whose turn it was when a statement took its victim.
	evictedFor map[string]string
	current    *action
	pipelined  *placements
	allocated  *placements
	final      final
	conditions map[string]podCondition
}

func newRecorder() *recorder {
	return &recorder{
		current: &action{}, pipelined: newPlacements(), allocated: newPlacements(),
		final:      final{PodGroups: map[string]podGroup{}, FitErrors: map[string]map[string]string{}},
		conditions: map[string]podCondition{},
	}
}

// placements are tasks with their nodes, in the order in which they first got one.
type placements struct {
	order []string
	nodes map[string]string
}

func newPlacements() *placements { return &placements{nodes: map[string]string{}} }

func (p *placements) put(task, node string) {
	for _, known := range p.order {
		if known == task {
			p.nodes[task] = node
			return
		}
	}
	p.order = append(p.order, task)
	p.nodes[task] = node
}

func (p *placements) list() []placement {
	listed := []placement{}
	for _, task := range p.order {
		if node, found := p.nodes[task]; found {
			listed = append(listed, placement{task, node})
		}
	}
	return listed
}

// begin starts to note an action.
func (r *recorder) begin(name string) {
	r.turn, r.evictedFor = "", map[string]string{}
	r.current = &action{Action: name, Evictions: []eviction{}, Binds: []placement{}, Trace: [][4]string{}}
	r.pipelined, r.allocated = newPlacements(), newPlacements()
}

// end returns what the action did.
func (r *recorder) end() *action {
	r.current.Pipelined, r.current.Allocated = r.pipelined.list(), r.allocated.list()
	return r.current
}

// Turn implements framework.Listener.
func (r *recorder) Turn(task *api.TaskInfo) { r.turn = task.FullName() }

// Operation implements framework.Listener.
func (r *recorder) Operation(name string, task *api.TaskInfo) {
	key := task.FullName()
	r.current.Trace = append(r.current.Trace, [4]string{name, key, task.NodeName, r.turn})
	switch name {
	case "evict":
		r.evictedFor[key] = r.turn
	case "pipeline":
		r.pipelined.put(key, task.NodeName)
	case "unpipeline":
		delete(r.pipelined.nodes, key)
	case "allocate":
		// A session that allocates, unlike a statement, binds before it tells.
		if task.Status == api.Allocated {
			r.allocated.put(key, task.NodeName)
		}
	case "unallocate":
		delete(r.allocated.nodes, key)
	}
}

func (r *recorder) evicted(task *api.TaskInfo, reason string) {
	by, found := r.evictedFor[task.FullName()]
	if !found {
		by = r.turn
	}
	r.current.Evictions = append(r.current.Evictions, eviction{task.FullName(), task.NodeName, reason, by})
}

func (r *recorder) bound(task *api.TaskInfo) {
	delete(r.allocated.nodes, task.FullName())
	r.current.Binds = append(r.current.Binds, placement{task.FullName(), task.NodeName})
}

// unplaced notes why tasks fit on no node.
func (r *recorder) unplaced(job *api.JobInfo) {
	for id, errors := range job.NodesFitErrors {
		name := string(id)
		if task, found := job.Tasks[id]; found {
			name = task.FullName()
		}
		if r.final.FitErrors[string(job.UID)] == nil {
			r.final.FitErrors[string(job.UID)] = map[string]string{}
		}
		r.final.FitErrors[string(job.UID)][name] = errors.Error()
	}
}

func (r *recorder) closed(job *api.JobInfo) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	group := podGroup{Phase: string(phaseOf(job)), Conditions: []condition{}}
	for _, each := range job.PodGroup.Status.Conditions {
		group.Conditions = append(group.Conditions, condition{string(each.Type), string(each.Status), each.Reason, each.Message})
	}
	r.final.PodGroups[string(job.UID)] = group
}

// finish returns what there was to note when the session was closed.
func (r *recorder) finish() *final {
	sort.Slice(r.final.Events, func(i, j int) bool {
		return fmt.Sprintf("%q", r.final.Events[i]) < fmt.Sprintf("%q", r.final.Events[j])
	})
	r.final.Pods = r.conditions
	return &r.final
}

// Event implements record.EventRecorder.
func (r *recorder) Event(object runtime.Object, kind, reason, message string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	on, err := meta.Accessor(object)
	if err != nil {
		return
	}
	what := "PodGroup"
	if _, ok := object.(*v1.Pod); ok {
		what = "Pod"
	}
	r.final.Events = append(r.final.Events, event{what, on.GetNamespace() + "/" + on.GetName(), kind, reason, message})
}

// Eventf implements record.EventRecorder.
func (r *recorder) Eventf(object runtime.Object, kind, reason, format string, arguments ...interface{}) {
	r.Event(object, kind, reason, fmt.Sprintf(format, arguments...))
}

// AnnotatedEventf implements record.EventRecorder.
func (r *recorder) AnnotatedEventf(object runtime.Object, _ map[string]string, kind, reason, format string, arguments ...interface{}) {
	r.Eventf(object, kind, reason, format, arguments...)
}

// Evict implements cache.Evictor.
func (r *recorder) Evict(*v1.Pod, string) error { return nil }

// UpdatePodCondition implements cache.StatusUpdater.
func (r *recorder) UpdatePodCondition(pod *v1.Pod, given *v1.PodCondition) (*v1.Pod, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.conditions[pod.Namespace+"/"+pod.Name] = podCondition{given.Reason, given.Message}
	return pod, nil
}

// UpdatePodGroup implements cache.StatusUpdater.
func (r *recorder) UpdatePodGroup(group *api.PodGroup) (*api.PodGroup, error) { return group, nil }
