// Command apiserver says what the genuine API server would: whether it accepts an object, and if not, why. It reads one
// request in JSON a line and writes an answer for each.
package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
	"kpreempt.io/reference/jsonlines"
)

// query is a line of input.
type query struct {
	ID string `json:"id"`
	// Cluster are the objects that admission plugins see, from this line on. As long as there are none, no plugin runs.
	Cluster []json.RawMessage `json:"cluster"`
	// Configuration is that of admission plugins by their name, for this line's Cluster.
	Configuration map[string]json.RawMessage `json:"configuration"`
	// Operation is create or update.
	Operation string `json:"operation"`
	// Object is what the client sends: for an update the whole new object. Text is the same as a string, so that it may
	// be no JSON.
	Object json.RawMessage `json:"object"`
	Text   string          `json:"text"`
	// Old is the object in the cluster, for an update.
	Old json.RawMessage `json:"old"`
	// Served asks for the object as the API server serves it then.
	Served bool `json:"served"`
}

// answer is a line of output.
type answer struct {
	ID       string `json:"id"`
	Accepted bool   `json:"accepted"`
	// Stage is decode, validate or admission: what has rejected the object.
	Stage    string         `json:"stage,omitempty"`
	Messages []string       `json:"messages,omitempty"`
	Warnings []string       `json:"warnings,omitempty"`
	Served   runtime.Object `json:"served,omitempty"`
	// Error says that the request itself cannot be decided.
	Error string `json:"error,omitempty"`
}

func run(input io.Reader, output io.Writer) error {
	server, err := newServer()
	if err != nil {
		return err
	}
	defer server.close()
	return jsonlines.Answer(input, output, server.answer)
}

func main() {
	klog.SetLogger(logr.Discard())
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "apiserver:", err)
		os.Exit(1)
	}
}
