package scheduler

import (
	"volcano.sh/volcano/pkg/scheduler/conf"
	"volcano.sh/volcano/pkg/scheduler/framework"
)

// ReadConfiguration reads a scheduler's configuration; the empty one is the one that is built in.
func ReadConfiguration(text string) ([]framework.Action, []conf.Tier, []conf.Configuration, error) {
	if text == "" {
		text = defaultSchedulerConf
	}
	actions, tiers, configurations, _, err := unmarshalSchedulerConf(text)
	return actions, tiers, configurations, err
}
