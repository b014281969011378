package proportion

import (
	"volcano.sh/volcano/pkg/scheduler/api"
	"volcano.sh/volcano/pkg/scheduler/framework"
)

// Queue is what proportion knows about a queue.
type Queue struct {
	Weight                       int32
	Share                        float64
	Deserved, Allocated, Request *api.Resource
	Overused                     bool
}

// Queues returns the queues of a proportion plugin; none for another plugin.
func Queues(plugin framework.Plugin) map[string]Queue {
	queues := map[string]Queue{}
	if pp, ok := plugin.(*proportionPlugin); ok {
		for _, attr := range pp.queueOpts {
			queues[attr.name] = Queue{
				Weight: attr.weight, Share: attr.share,
				Deserved: attr.deserved, Allocated: attr.allocated, Request: attr.request,
				Overused: attr.deserved.LessEqual(attr.allocated, api.Zero),
			}
		}
	}
	return queues
}
