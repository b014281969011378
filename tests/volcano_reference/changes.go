package main

const (
	canonical = "volcano.sh/volcano/pkg/scheduler/canonical"
	scheduler = "pkg/scheduler/"
	byKey     = "canonical.ByKey"
	byName    = "api.TasksByName"
)

// files are all changes to the genuine scheduler: maps are walked in the order of their keys, parallel work is done in
// order, the first of equal nodes is chosen, and every operation is told to whoever listens.
var files = []file{
	{
		path:    scheduler + "actions/allocate/allocate.go",
		imports: []string{canonical},
		changes: []change{
			walk("Action.Execute", "ssn.Jobs", byKey, 1),
			walk("Action.Execute", "job.TaskStatusIndex[api.Pending]", byName, 1),
		},
	},
	{
		path:    scheduler + "actions/backfill/backfill.go",
		imports: []string{canonical},
		changes: []change{
			walk("Action.Execute", "ssn.Jobs", byKey, 1),
			walk("Action.Execute", "job.TaskStatusIndex[api.Pending]", byName, 1),
			walk("Action.Execute", "ssn.Nodes", byKey, 2),
		},
	},
	{
		path:    scheduler + "actions/enqueue/enqueue.go",
		imports: []string{canonical},
		changes: []change{walk("Action.Execute", "ssn.Jobs", byKey, 1)},
	},
	{
		path:    scheduler + "actions/preempt/preempt.go",
		imports: []string{canonical},
		changes: []change{
			walk("Action.Execute", "ssn.Jobs", byKey, 1),
			walk("Action.Execute", "job.TaskStatusIndex[api.Pending]", byName, 2),
			walk("Action.Execute", "queues", byKey, 1),
			walk("preempt", "node.Tasks", byName, 1),
		},
	},
	{
		path:    scheduler + "actions/reclaim/reclaim.go",
		imports: []string{canonical},
		changes: []change{
			walk("Action.Execute", "ssn.Jobs", byKey, 1),
			walk("Action.Execute", "job.TaskStatusIndex[api.Pending]", byName, 1),
			walk("Action.Execute", "ssn.Nodes", byKey, 1),
			walk("Action.Execute", "n.Tasks", byName, 1),
		},
	},
	{
		path:    scheduler + "api/devices/nvidia/vgpu/utils.go",
		changes: []change{call("init", "NewClient", "noClient")},
	},
	{
		path:    scheduler + "api/node_info.go",
		imports: []string{canonical},
		changes: []change{
			walk("NodeInfo.Clone", "ni.Tasks", "TasksByName", 1),
			walk("NodeInfo.setNode", "ni.Tasks", "TasksByName", 1),
			walk("NodeInfo.Pods", "ni.Tasks", "TasksByName", 1),
			// It would end this process; the genuine scheduler dies there.
			call("NodeInfo.UpdateTask", "klog.Fatalf", "canonical.Die"),
		},
	},
	{
		path:    scheduler + "api/resource_info.go",
		imports: []string{canonical},
		// The first of the resources that are short is the one that a message names.
		changes: []change{
			walkKeys("Resource.LessEqualWithResourcesName", "r.ScalarResources", "canonical.Keys", 1),
		},
	},
	{
		path:    scheduler + "framework/job_updater.go",
		imports: []string{canonical},
		unused:  []string{"k8s.io/client-go/util/workqueue"},
		changes: []change{
			walk("newJobUpdater", "ssn.Jobs", byKey, 1),
			call("jobUpdater.UpdateAll", "workqueue.ParallelizeUntil", "canonical.InOrder"),
		},
	},
	{
		path: scheduler + "framework/session.go",
		changes: []change{
			walk("Session.Allocate", "job.TaskStatusIndex[api.Allocated]", byName, 1),
			last("Session.Allocate", `tell("allocate", task)`),
			last("Session.Pipeline", `tell("pipeline", task)`),
			last("Session.Evict", `tell("evict", reclaimee)`),
		},
	},
	{
		path: scheduler + "framework/session_plugins.go",
		// Every action asks this first about a task, once it is the task's turn.
		changes: []change{first("Session.PrePredicateFn", "tellTurn(task)")},
	},
	{
		path: scheduler + "framework/statement.go",
		changes: []change{
			last("Statement.Evict", `tell("evict", reclaimee)`),
			last("Statement.Pipeline", `tell("pipeline", task)`),
			last("Statement.Allocate", `tell("allocate", task)`),
			// These forget the task's node at their end.
			first("Statement.unevict", `tell("unevict", reclaimee)`),
			first("Statement.unpipeline", `tell("unpipeline", task)`),
			first("Statement.unallocate", `tell("unallocate", task)`),
		},
	},
	{
		path:    scheduler + "plugins/drf/drf.go",
		imports: []string{canonical},
		changes: []change{
			walk("drfPlugin.OnSessionOpen", "ssn.Jobs", byKey, 1),
			// The order in which shares are added up decides the last bit of a sum.
			walk("drfPlugin.updateHierarchicalShare", "node.children", byKey, 2),
		},
	},
	{
		path:    scheduler + "plugins/nodeorder/nodeorder.go",
		imports: []string{canonical},
		unused:  []string{"k8s.io/client-go/util/workqueue"},
		changes: []change{
			call("interPodAffinityScore", "workqueue.ParallelizeUntil", "canonical.InOrder"),
			call("taintTolerationScore", "workqueue.ParallelizeUntil", "canonical.InOrder"),
			call("podTopologySpreadScore", "workqueue.ParallelizeUntil", "canonical.InOrder"),
			call("selectorSpreadScore", "workqueue.ParallelizeUntil", "canonical.InOrder"),
		},
	},
	{
		path:    scheduler + "plugins/proportion/proportion.go",
		imports: []string{canonical},
		changes: []change{
			walk("proportionPlugin.OnSessionOpen", "ssn.Jobs", byKey, 1),
			walk("proportionPlugin.OnSessionOpen", "pp.queueOpts", byKey, 3),
		},
	},
	{
		path:    scheduler + "plugins/util/k8s/snapshot.go",
		imports: []string{canonical},
		changes: []change{walk("NewSnapshot", "nodeInfoMap", byKey, 1)},
	},
	{
		path:    scheduler + "util/predicate_helper.go",
		imports: []string{canonical},
		unused:  []string{"k8s.io/client-go/util/workqueue"},
		changes: []change{
			call("predicateHelper.PredicateNodes", "workqueue.ParallelizeUntil", "canonical.InOrder"),
		},
	},
	{
		path:    scheduler + "util/scheduler_helper.go",
		imports: []string{canonical},
		unused:  []string{"math/rand", "k8s.io/client-go/util/workqueue"},
		changes: []change{
			call("PrioritizeNodes", "workqueue.ParallelizeUntil", "canonical.InOrder"),
			call("SelectBestNode", "rand.Intn", "canonical.First"),
		},
	},
}
