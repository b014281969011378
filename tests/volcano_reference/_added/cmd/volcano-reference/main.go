// Command volcano-reference answers scenarios with sessions of the genuine Volcano scheduler: JSON lines on standard
// input, one line of {"name", "verdict"} or {"name", "error"} each on standard output.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/go-logr/logr"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

// version is Volcano's, given by the build.
var version = "unknown"

// scenario is one line of input.
type scenario struct {
	Name    string            `json:"name"`
	Objects []json.RawMessage `json:"objects"`
	// Conf is the scheduler's configuration; empty, the one that is built in.
	Conf string `json:"conf"`
}

// answer is one line of output.
type answer struct {
	Name    string   `json:"name"`
	Verdict *verdict `json:"verdict,omitempty"`
	Error   *problem `json:"error,omitempty"`
}

type problem struct {
	Message string `json:"message"`
}

func main() {
	asked := flag.Bool("version", false, "print the version of the scheduler's code")
	flag.Parse()
	if *asked {
		fmt.Println(version)
		return
	}
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "volcano-reference:", err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	klog.SetLogger(logr.Discard())
	utilruntime.ErrorHandlers = nil
	// A panic in parallel work would end this process; it is noted instead.
	utilruntime.ReallyCrash = false
	utilruntime.PanicHandlers = []func(interface{}){elsewhere.note}
	lines := bufio.NewReaderSize(input, 1<<20)
	writer := bufio.NewWriterSize(output, 1<<16)
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 1 {
			if err := encoder.Encode(answerLine(line)); err != nil {
				return err
			}
			if lines.Buffered() == 0 {
				if err := writer.Flush(); err != nil {
					return err
				}
			}
		}
		if err == io.EOF {
			return writer.Flush()
		}
		if err != nil {
			return err
		}
	}
}

func answerLine(line []byte) answer {
	var asked scenario
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Name: asked.Name, Error: &problem{err.Error()}}
	}
	verdict, err := decide(&asked)
	if err != nil {
		return answer{Name: asked.Name, Error: &problem{err.Error()}}
	}
	return answer{Name: asked.Name, Verdict: verdict}
}
