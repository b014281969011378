package main

import (
	"fmt"
	"math"
	"sync"

	"volcano.sh/apis/pkg/apis/scheduling"
	"volcano.sh/volcano/cmd/scheduler/app/options"
	"volcano.sh/volcano/pkg/scheduler"
	_ "volcano.sh/volcano/pkg/scheduler/actions"
	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/api/devices/nvidia/gpushare"
	"volcano.sh/volcano/pkg/scheduler/api/devices/nvidia/vgpu"
	"volcano.sh/volcano/pkg/scheduler/canonical"
	"volcano.sh/volcano/pkg/scheduler/conf"
	"volcano.sh/volcano/pkg/scheduler/framework"
	_ "volcano.sh/volcano/pkg/scheduler/plugins"
	"volcano.sh/volcano/pkg/scheduler/plugins/proportion"
	"volcano.sh/volcano/pkg/scheduler/util"
)

func init() {
	// The defaults of the scheduler's flags: every node is looked at.
	options.ServerOpts = &options.ServerOption{
		EnablePriorityClass: true, MinNodesToFind: 100, MinPercentageOfNodesToFind: 5, PercentageOfNodesToFind: 100,
	}
}

// elsewhere notes panics of parallel work.
var elsewhere panics

type panics struct {
	mutex sync.Mutex
	found []interface{}
}

func (p *panics) note(found interface{}) {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	p.found = append(p.found, found)
}

// take returns the first panic, or nil, and forgets all.
func (p *panics) take() interface{} {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	defer func() { p.found = nil }()
	if len(p.found) == 0 {
		return nil
	}
	return p.found[0]
}

// decide runs one session. It fails where the scenario cannot be read or the scheduler refuses its configuration.
func decide(asked *scenario) (*verdict, error) {
	objects, err := decodeObjects(asked.Objects)
	if err != nil {
		return nil, err
	}
	actions, tiers, configurations, err := scheduler.ReadConfiguration(asked.Conf)
	if err != nil {
		return nil, err
	}
	// Plugins turn these on by their arguments, and never off again.
	gpushare.GpuSharingEnable, gpushare.GpuNumberEnable, gpushare.NodeLockEnable, vgpu.VGPUEnable = false, false, false, false
	conf.EnabledActionMap = map[string]bool{}
	for _, each := range actions {
		conf.EnabledActionMap[each.Name()] = true
	}
	elsewhere.take()
	decided, died := guarded(func() *verdict {
		recorder := newRecorder()
		framework.Listening = recorder
		defer func() { framework.Listening = nil }()
		cluster := newCluster(objects, recorder)
		defer cluster.stop()
		return play(cluster, actions, tiers, configurations)
	})
	if died == nil {
		died = elsewhere.take()
	}
	if died != nil {
		return &verdict{Panics: true, Panic: fmt.Sprint(died)}, nil
	}
	return decided, nil
}

func guarded(work func() *verdict) (decided *verdict, died interface{}) {
	defer func() {
		if found := recover(); found != nil {
			died = found
		}
	}()
	return work(), nil
}

// play opens a session, runs the actions and closes it.
func play(c *cluster, actions []framework.Action, tiers []conf.Tier, configurations []conf.Configuration) *verdict {
	session := framework.OpenSession(c, tiers, configurations)
	decided := &verdict{Opening: &opening{state: stateOf(session), Scores: scoresOf(session)}}
	for _, each := range actions {
		pending := pendingGroups(session)
		c.recorder.begin(each.Name())
		each.Execute(session)
		done := c.recorder.end()
		for _, id := range pending {
			if session.Jobs[api.JobID(id)].PodGroup.Status.Phase == scheduling.PodGroupInqueue {
				done.Enqueued = append(done.Enqueued, id)
			}
		}
		done.state = stateOf(session)
		decided.Actions = append(decided.Actions, *done)
	}
	for _, job := range session.Jobs {
		c.recorder.unplaced(job)
	}
	framework.CloseSession(session)
	decided.Final = c.recorder.finish()
	return decided
}

func pendingGroups(session *framework.Session) []string {
	var pending []string
	for _, job := range canonical.ByKey(session.Jobs) {
		if phaseOf(job) != scheduling.PodGroupInqueue {
			pending = append(pending, string(job.UID))
		}
	}
	return pending
}

func stateOf(session *framework.Session) state {
	found := state{Jobs: map[string]job{}, Queues: map[string]queue{}}
	for id, info := range session.Jobs {
		tasks := map[string]int{}
		for status, of := range info.TaskStatusIndex {
			tasks[status.String()] = len(of)
		}
		valid := session.JobValid(info)
		found.Jobs[string(id)] = job{
			Queue: string(info.Queue), Priority: info.Priority, MinAvailable: info.MinAvailable,
			Phase: string(phaseOf(info)), Tasks: tasks,
			ReadyNum: info.ReadyTaskNum(), WaitingNum: info.WaitingTaskNum(),
			Valid: valid == nil || valid.Pass, Ready: session.JobReady(info), Pipelined: session.JobPipelined(info),
			Starving: session.JobStarving(info), Allocated: amounts{info.Allocated.Clone()},
		}
	}
	for name, known := range proportion.Queues(session.Opened(proportion.PluginName)) {
		found.Queues[name] = queue{
			Weight: known.Weight, Share: known.Share, Overused: known.Overused,
			Deserved: amounts{known.Deserved.Clone()}, Allocated: amounts{known.Allocated.Clone()},
			Request: amounts{known.Request.Clone()},
		}
	}
	return found
}

// scoresOf scores every node for every pending task.
func scoresOf(session *framework.Session) map[string]map[string]float64 {
	scores := map[string]map[string]float64{}
	for _, info := range canonical.ByKey(session.Jobs) {
		for _, task := range api.TasksByName(info.TaskStatusIndex[api.Pending]) {
			of := map[string]float64{}
			nodes := util.PrioritizeNodes(
				task, session.NodeList, session.BatchNodeOrderFn, session.NodeOrderMapFn, session.NodeOrderReduceFn,
			)
			for score, scored := range nodes {
				for _, node := range scored {
					if !math.IsNaN(score) && !math.IsInf(score, 0) {
						of[node.Name] = score
					}
				}
			}
			scores[task.FullName()] = of
		}
	}
	return scores
}
