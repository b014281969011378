package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
)

const incoming = `{"metadata":{"name":"incoming","namespace":"default"},"spec":{"priority":100,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`

func node(name string) string {
	return fmt.Sprintf(`{"kind":"Node","metadata":{"name":%q},"status":{"allocatable":{"cpu":"1","memory":"1Gi","pods":"10"}}}`, name)
}

func running(name, node string, priority int) string {
	return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"namespace":"default"},"spec":{"nodeName":%q,"priority":%d,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"startTime":"2026-01-01T00:00:00Z"}}`, name, node, priority)
}

func nominated(name, node string, priority int) string {
	return fmt.Sprintf(`{"kind":"Pod","metadata":{"name":%q,"namespace":"default"},"spec":{"priority":%d,"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]},"status":{"nominatedNodeName":%q}}`, name, priority, node)
}

func line(name, more string, objects ...string) string {
	return fmt.Sprintf(`{"name":%q,"objects":[%s],"pod":%s%s}`, name, strings.Join(objects, ","), incoming, more)
}

func answers(t *testing.T, given options, lines ...string) []answer {
	t.Helper()
	var output bytes.Buffer
	if err := run(given, strings.NewReader(strings.Join(lines, "\n")+"\n"), &output); err != nil {
		t.Fatal(err)
	}
	var all []answer
	for decoder := json.NewDecoder(&output); decoder.More(); {
		var one answer
		if err := decoder.Decode(&one); err != nil {
			t.Fatal(err)
		}
		all = append(all, one)
	}
	if len(all) != len(lines) {
		t.Fatalf("%d answers to %d lines", len(all), len(lines))
	}
	return all
}

func TestEqualCandidatesAreAllNominated(t *testing.T) {
	got := answers(t, options{}, line("tie", "",
		node("a"), node("b"), node("c"), running("va", "a", 0), running("vb", "b", 0), running("vc", "c", 50)))[0].Verdict
	if !slices.Equal(got.NominatedNodes, []string{"a", "b"}) || len(got.Candidates) != 3 {
		t.Fatalf("nominated %v of %v", got.NominatedNodes, got.Candidates)
	}
	if want := "0/3 nodes are available: 3 Insufficient cpu."; got.Message != want {
		t.Fatalf("message %q, want %q", got.Message, want)
	}
}

func TestFeatureGatesEndWithTheirScenario(t *testing.T) {
	compare := `,"featureGates":{"TaintTolerationComparisonOperators":true}`
	tainted := strings.Replace(node("a"), `"status"`, `"spec":{"taints":[{"key":"k","value":"5","effect":"NoSchedule"}]},"status"`, 1)
	tolerant := func(text string) string {
		return strings.Replace(text, `"priority":100`, `"tolerations":[{"key":"k","operator":"Gt","value":"3"}],"priority":100`, 1)
	}
	got := answers(t, options{}, tolerant(line("off", "", tainted)), tolerant(line("on", compare, tainted)), tolerant(line("off again", "", tainted)))
	var fits []int
	for _, one := range got {
		fits = append(fits, len(one.Verdict.FeasibleNodes))
	}
	if !slices.Equal(fits, []int{0, 1, 0}) {
		t.Fatalf("feasible nodes %v", fits)
	}
}

func TestNominatedPodsTakeRoomInALiveQueue(t *testing.T) {
	scenario := line("nominated", "", node("a"), nominated("first", "a", 200))
	for live, want := range map[bool]int{false: 1, true: 0} {
		got := answers(t, options{live: live}, scenario)[0].Verdict
		if len(got.FeasibleNodes) != want {
			t.Errorf("live %v: feasible nodes %v", live, got.FeasibleNodes)
		}
	}
}

func TestTheOddsOfAllStartsAddUp(t *testing.T) {
	var objects []string
	for i := range 150 {
		name := fmt.Sprintf("n%03d", i)
		objects = append(objects, node(name), running("v"+name, name, i%7))
	}
	got := answers(t, options{offsets: offsets{given: true, all: true}}, line("many", "", objects...))[0].Verdict
	var total float64
	for share := range maps.Values(got.Odds) {
		total += share
	}
	if len(got.Sampled.Starts) != 150 || got.Sampled.NumCandidates != 100 || math.Abs(total-150) > 1e-6 {
		t.Fatalf("%d starts of %d candidates, shares %v", len(got.Sampled.Starts), got.Sampled.NumCandidates, total)
	}
	if first := got.Sampled.Starts[0]; first.Candidates != 100 {
		t.Fatalf("the search from the first node found %d candidates", first.Candidates)
	}
}

func TestTroubleStaysOnItsLine(t *testing.T) {
	broken := []string{
		`nonsense`,
		`{"name":"no pod"}`,
		line("gate", `,"featureGates":{"NoSuchGate":true}`, node("a")),
		line("configuration", `,"config":"apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nparallelism: -1"`, node("a")),
		line("same pod twice", "", node("a"), strings.Replace(running("x", "a", 0), `"name":"x"`, `"name":"x","uid":"1"`, 1),
			strings.Replace(running("y", "a", 0), `"name":"y"`, `"name":"y","uid":"1"`, 1)),
	}
	got := answers(t, options{}, append(broken, line("fine", "", node("a")))...)
	for i, one := range got {
		if failed := one.Error != nil; failed != (i < len(broken)) {
			t.Errorf("line %d (%s): error %v", i, one.Name, one.Error)
		}
	}
}
