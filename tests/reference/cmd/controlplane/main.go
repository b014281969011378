// Command controlplane runs a throw-away Kubernetes control plane on loopback: etcd, kube-apiserver,
// kube-controller-manager, kube-scheduler and, playing the kubelets of annotated nodes, kwok. Each has its own port and
// writes its log into one folder. A line of JSON on standard output says when it is ready; it stops on SIGTERM, SIGINT,
// and at the end of standard input. A line "stop COMPONENT" or "start COMPONENT" on standard input stops a component
// or starts it again; a line with the component's name on standard output says that this is done.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// options are what a control plane can be asked for.
type options struct {
	dir             string
	schedulerConfig string
	featureGates    string
	kwok            bool
	endJobs         bool
	serviceAccounts bool
	within          time.Duration
	apiServer       arguments
	manager         arguments
	scheduler       arguments
}

// arguments is a repeatable flag: more arguments for a component.
type arguments []string

func (a *arguments) String() string { return strings.Join(*a, " ") }

func (a *arguments) Set(text string) error {
	*a = append(*a, text)
	return nil
}

func main() {
	// Components die with the thread that started them, and the main thread lives as long as the process.
	runtime.LockOSThread()
	if len(os.Args) > 2 && os.Args[1] == "component" {
		os.Exit(runComponent(os.Args[2], os.Args[3:]))
	}
	var given options
	flag.StringVar(&given.dir, "dir", "", "`folder` for data, certificates and logs (default: a temporary one, removed at the end)")
	flag.StringVar(&given.schedulerConfig, "scheduler-config", "", "KubeSchedulerConfiguration `file` for the scheduler")
	flag.StringVar(&given.featureGates, "feature-gates", "", "`NAME=true,…` for every component")
	flag.BoolVar(&given.kwok, "kwok", true, "run kwok for nodes annotated kwok.x-k8s.io/node=fake")
	flag.BoolVar(&given.endJobs, "end-jobs", true, "let kwok end the pods of Jobs as soon as they run")
	flag.BoolVar(&given.serviceAccounts, "service-accounts", false, "reject pods whose service account is missing; the namespace's default one isn't created")
	flag.DurationVar(&given.within, "within", time.Minute, "give up when it isn't ready after this `time`")
	flag.Var(&given.apiServer, "apiserver-arg", "one more `argument` for kube-apiserver (repeatable)")
	flag.Var(&given.manager, "controller-manager-arg", "one more `argument` for kube-controller-manager (repeatable)")
	flag.Var(&given.scheduler, "scheduler-arg", "one more `argument` for kube-scheduler (repeatable)")
	flag.Parse()
	if err := run(given); err != nil {
		fmt.Fprintln(os.Stderr, "controlplane:", err)
		os.Exit(1)
	}
}

func run(given options) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	requests := make(chan string)
	go func() {
		defer stop()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			select {
			case requests <- lines.Text():
			case <-ctx.Done():
				return
			}
		}
	}()
	plane, err := newPlane(given)
	if err != nil {
		return err
	}
	defer plane.stop()
	begun := time.Now()
	if err := plane.start(ctx); err != nil {
		if ctx.Err() != nil {
			return nil
		}
		return err
	}
	line, err := json.Marshal(map[string]any{
		"kubeconfig": plane.path("kubeconfig"),
		"server":     plane.server(),
		"metrics":    plane.metrics(),
		"dir":        plane.dir,
		"seconds":    time.Since(begun).Seconds(),
	})
	if err != nil {
		return err
	}
	fmt.Println(string(line))
	return plane.serve(ctx, requests)
}
