// Command reference answers the scenarios of kpreempt batch with the code of the genuine kube-scheduler: JSON lines on
// standard input, one line of {"name", "verdict"} (or "error", or "bench") each on standard output.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
	"kpreempt.io/reference/jsonlines"
)

// scenario is one line of input.
type scenario struct {
	Name         string            `json:"name"`
	Objects      []json.RawMessage `json:"objects"`
	Pod          json.RawMessage   `json:"pod"`
	Config       string            `json:"config"`
	FeatureGates map[string]bool   `json:"featureGates"`
	// Queued has this one scenario played as with -live.
	Queued bool `json:"queued"`
}

// answer is one line of output.
type answer struct {
	Name    string   `json:"name"`
	Verdict *verdict `json:"verdict,omitempty"`
	Bench   *timings `json:"bench,omitempty"`
	Error   *problem `json:"error,omitempty"`
}

type problem struct {
	Message string `json:"message"`
}

type options struct {
	bench    int
	offsets  offsets
	draws    int
	starts   bool
	snapshot string
	live     bool
	version  bool
}

func main() {
	var given options
	flag.IntVar(&given.bench, "bench", 0, "time each scenario's steps with this many `runs`, instead of a verdict")
	flag.Var(&given.offsets, "offset", "repeat the sampled search for candidates from this `start`, or from all")
	flag.IntVar(&given.draws, "draws", 0, "repeat the whole search for candidates this many `times`, with all that is left to chance")
	flag.BoolVar(&given.starts, "starts", false, "repeat the search for nodes to score from every start that the scheduler may remember")
	flag.StringVar(&given.snapshot, "snapshot", "", "`file` with a cluster (JSON, or gzipped) under every scenario's own objects")
	flag.BoolVar(&given.live, "live", false, "see nominated pods and image sizes as a running scheduler does, not as the recorded verdicts do")
	flag.BoolVar(&given.version, "version", false, "print the version of the scheduler's code")
	flag.Parse()
	if given.version {
		fmt.Println(schedulerVersion())
		return
	}
	if err := run(given, os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

func schedulerVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, module := range info.Deps {
			if module.Path == "k8s.io/kubernetes" {
				return module.Version
			}
		}
	}
	return "unknown"
}

func run(given options, input io.Reader, output io.Writer) error {
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
	player := &player{options: given}
	utilruntime.ReallyCrash = false
	handlePanics(player.panicked)
	if given.snapshot != "" {
		var err error
		if player.cluster, err = readSnapshot(given.snapshot); err != nil {
			return err
		}
	}
	defer player.drop()
	return jsonlines.Answer(input, output, player.play)
}
