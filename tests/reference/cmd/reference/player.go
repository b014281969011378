package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// player answers scenarios one after the other (feature gates belong to the process). It keeps the last session for
// scenarios that bring no objects of their own.
type player struct {
	options
	cluster     []runtime.Object
	kept        *session
	keptFor     string
	gated       bool
	parallelism int
	reset       func() error

	panics sync.Mutex
	first  any
}

// panicked notes a panic in a goroutine of the scheduler's code.
func (p *player) panicked(problem any) {
	p.panics.Lock()
	defer p.panics.Unlock()
	if p.first == nil {
		p.first = problem
	}
}

func (p *player) play(line []byte) (result answer) {
	var given scenario
	if err := json.Unmarshal(line, &given); err != nil {
		return answer{Error: &problem{"not a scenario: " + err.Error()}}
	}
	result.Name = given.Name
	p.first = nil
	defer func() {
		trouble := recover()
		p.panics.Lock()
		defer p.panics.Unlock()
		if trouble == nil {
			trouble = p.first
		}
		if trouble != nil {
			result = answer{Name: given.Name, Error: &problem{fmt.Sprintf("panic: %v", trouble)}}
			p.drop()
		}
	}()
	if err := p.answer(&given, &result); err != nil {
		return answer{Name: given.Name, Error: &problem{err.Error()}}
	}
	return result
}

func (p *player) answer(given *scenario, result *answer) error {
	if p.gated {
		// Gates have a say in the defaults that decoding fills in; those of the scenario before must not.
		p.drop()
		p.gated = false
	}
	pod, err := decodePod(given.Pod)
	if err != nil {
		return err
	}
	own, err := decodeObjects(given.Objects)
	if err != nil {
		return err
	}
	using, err := p.prepare(given, pod, own)
	if err != nil {
		return err
	}
	if p.bench > 0 {
		result.Bench, err = using.bench(pod, p.bench, p.parallelism)
		return err
	}
	result.Verdict, err = using.decide(pod, p.options)
	return err
}

// prepare sets the scenario's feature gates and gives the session to play it in: the kept one where nothing differs.
// A pod that is in the cluster already is placed as if it were not there.
func (p *player) prepare(given *scenario, pod *v1.Pod, own []runtime.Object) (*session, error) {
	live := p.live || given.Queued
	setting := fmt.Sprintf("%q %v %v", given.Config, given.FeatureGates, live)
	if p.kept != nil && len(own) == 0 && p.keptFor == setting && !p.kept.holds(pod) {
		return p.kept, nil
	}
	p.drop()
	p.gated = len(given.FeatureGates) > 0
	var err error
	if p.reset, err = setGates(given.FeatureGates); err != nil {
		return nil, err
	}
	configuration, err := readConfiguration(given.Config)
	if err != nil {
		return nil, err
	}
	p.parallelism = int(configuration.Parallelism)
	if p.offsets.given {
		p.parallelism = 1
	}
	objects := slices.DeleteFunc(overlay(p.cluster, own), func(object runtime.Object) bool { return samePod(object, pod) })
	p.kept, err = newSession(objects, configuration, p.parallelism, live)
	p.keptFor = setting
	if len(own) > 0 || len(objects) < len(p.cluster) {
		p.keptFor = ""
	}
	return p.kept, err
}

// drop ends the kept session and puts the feature gates back.
func (p *player) drop() {
	if p.kept != nil {
		p.kept.close()
		p.kept = nil
	}
	if p.reset != nil {
		if err := p.reset(); err != nil {
			p.panicked(err)
		}
		p.reset = nil
	}
}

// samePod says whether an object is the pod, by namespace and name.
func samePod(object runtime.Object, pod *v1.Pod) bool {
	other, isPod := object.(*v1.Pod)
	return isPod && other.Name == pod.Name && other.Namespace == pod.Namespace
}

// holds says whether the pod is one of those on the session's nodes.
func (s *session) holds(pod *v1.Pod) bool {
	known, found, err := s.pods.Get(pod)
	return err == nil && found && known.(*v1.Pod).Spec.NodeName != ""
}
