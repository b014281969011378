package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
)

// stopGrace is how long a component may take to end by itself.
const stopGrace = 2 * time.Second

// plane is one control plane: etcd in this process, the others each in a child process.
type plane struct {
	options
	temporary bool
	ports     map[string]int
	etcd      *embed.Etcd
	running   []*component
	died      chan *component
}

type component struct {
	name    string
	command *exec.Cmd
	done    chan struct{}
}

// newPlane takes ports and writes the files; nothing runs yet.
func newPlane(given options) (*plane, error) {
	p := &plane{options: given, died: make(chan *component, 8)}
	var err error
	if p.dir == "" {
		if p.dir, err = os.MkdirTemp("", "controlplane-"); err != nil {
			return nil, err
		}
		p.temporary = true
	} else if err = os.MkdirAll(p.dir, 0o700); err != nil {
		return nil, err
	}
	if p.dir, err = filepath.Abs(p.dir); err != nil {
		return nil, err
	}
	if p.ports, err = freePorts("etcd", "etcd-peer", "kube-apiserver", "kube-controller-manager", "kube-scheduler"); err == nil {
		err = p.writeFiles()
	}
	if err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *plane) path(name string) string { return filepath.Join(p.dir, name) }

func (p *plane) address(name string) string { return fmt.Sprintf("127.0.0.1:%d", p.ports[name]) }

func (p *plane) server() string { return "https://" + p.address("kube-apiserver") }

// metrics are where the components that decide tell their metrics, which the client of this control plane may read.
func (p *plane) metrics() map[string]string {
	found := map[string]string{}
	for _, name := range []string{"kube-controller-manager", "kube-scheduler"} {
		found[name] = "https://" + p.address(name) + "/metrics"
	}
	return found
}

// freePorts finds a free port on loopback for each name.
func freePorts(names ...string) (map[string]int, error) {
	ports := map[string]int{}
	for _, name := range names {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		// All stay open until every name has its port, so that no two are the same.
		defer listener.Close()
		ports[name] = listener.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

// start runs the components, each when what it needs is ready, and returns when all are.
func (p *plane) start(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	if err := p.startEtcd(ctx); err != nil {
		return err
	}
	if err := p.launch("kube-apiserver", p.apiServerArguments()); err != nil {
		return err
	}
	if err := p.ready(ctx, "kube-apiserver", "/readyz"); err != nil {
		return err
	}
	if err := p.launch("kube-controller-manager", p.managerArguments()); err != nil {
		return err
	}
	if err := p.launch("kube-scheduler", p.schedulerArguments()); err != nil {
		return err
	}
	if p.kwok {
		if err := p.launch("kwok", []string{
			"--kubeconfig=" + p.path("kubeconfig"), "--config=" + p.path("kwok.yaml"),
			"--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
			"--node-lease-duration-seconds=40",
		}); err != nil {
			return err
		}
	}
	if err := p.ready(ctx, "kube-controller-manager", "/healthz"); err != nil {
		return err
	}
	return p.ready(ctx, "kube-scheduler", "/readyz")
}

func (p *plane) startEtcd(ctx context.Context) error {
	config := embed.NewConfig()
	config.Dir = p.path("etcd")
	config.LogLevel = "error"
	config.LogOutputs = []string{p.path("etcd.log")}
	config.UnsafeNoFsync = true
	client, peer := url.URL{Scheme: "http", Host: p.address("etcd")}, url.URL{Scheme: "http", Host: p.address("etcd-peer")}
	config.ListenClientUrls, config.AdvertiseClientUrls = []url.URL{client}, []url.URL{client}
	config.ListenPeerUrls, config.AdvertisePeerUrls = []url.URL{peer}, []url.URL{peer}
	config.InitialCluster = config.InitialClusterFromName(config.Name)
	var err error
	if p.etcd, err = embed.StartEtcd(config); err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	select {
	case <-p.etcd.Server.ReadyNotify():
		return nil
	case err := <-p.etcd.Err():
		return fmt.Errorf("etcd: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("etcd isn't ready: %w", ctx.Err())
	}
}

func (p *plane) apiServerArguments() []string {
	more := p.apiServer
	if !p.serviceAccounts {
		// A pod needn't wait for its namespace's service account.
		more = append([]string{"--disable-admission-plugins=ServiceAccount"}, more...)
	}
	return p.arguments("kube-apiserver", more,
		"--etcd-servers=http://"+p.address("etcd"),
		"--client-ca-file="+p.path("ca.crt"),
		"--authorization-mode=RBAC",
		"--endpoint-reconciler-type=none",
		"--enable-priority-and-fairness=false",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+p.path("tokens.key"),
		"--service-account-signing-key-file="+p.path("tokens.key"),
		"--allow-privileged=true",
	)
}

func (p *plane) managerArguments() []string {
	return p.arguments("kube-controller-manager", p.manager,
		"--kubeconfig="+p.path("kubeconfig"),
		"--leader-elect=false",
		"--authentication-skip-lookup=true",
		"--client-ca-file="+p.path("ca.crt"),
		"--service-account-private-key-file="+p.path("tokens.key"),
		"--root-ca-file="+p.path("ca.crt"),
		// Nodes that nobody plays keep the conditions they were given.
		"--node-monitor-grace-period=24h",
		"--kube-api-qps=1000",
		"--kube-api-burst=2000",
	)
}

func (p *plane) schedulerArguments() []string {
	return p.arguments("kube-scheduler", p.scheduler,
		"--config="+p.path("scheduler.yaml"),
		"--authentication-skip-lookup=true",
		"--client-ca-file="+p.path("ca.crt"),
	)
}

// arguments are a component's own ones, those of every component with a server, and those asked for.
func (p *plane) arguments(name string, more []string, own ...string) []string {
	own = append(own,
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", p.ports[name]),
		"--tls-cert-file="+p.path("server.crt"),
		"--tls-private-key-file="+p.path("server.key"),
	)
	if p.featureGates != "" {
		own = append(own, "--feature-gates="+p.featureGates)
	}
	return append(own, more...)
}

// launch starts this program again as the named component, with its output in a file.
func (p *plane) launch(name string, args []string) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	output, err := os.Create(p.path(name + ".log"))
	if err != nil {
		return err
	}
	defer output.Close()
	started := &component{name: name, command: exec.Command(program, append([]string{"component", name}, args...)...), done: make(chan struct{})}
	started.command.Stdout, started.command.Stderr = output, output
	started.command.Dir = p.dir
	started.command.SysProcAttr = childAttributes()
	if err := started.command.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	p.running = append(p.running, started)
	go func() {
		_ = started.command.Wait()
		close(started.done)
		p.died <- started
	}()
	return nil
}

// ready waits until a component's server answers a path with 200.
func (p *plane) ready(ctx context.Context, name, path string) error {
	trusted, err := p.trust()
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{TLSClientConfig: trusted}}
	defer client.CloseIdleConnections()
	for {
		if answer, err := client.Get("https://" + p.address(name) + path); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case gone := <-p.died:
			return p.ended(gone)
		case <-ctx.Done():
			return fmt.Errorf("%s isn't ready: %w", name, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// ended is the error for a component that is gone, with the end of its log.
func (p *plane) ended(gone *component) error {
	log, _ := os.ReadFile(p.path(gone.name + ".log"))
	lines := strings.Split(strings.TrimSpace(string(log)), "\n")
	if len(lines) > 5 {
		lines = lines[len(lines)-5:]
	}
	return fmt.Errorf("%s ended (%s):\n%s", gone.name, gone.command.ProcessState, strings.Join(lines, "\n"))
}

// serve does what the requests say, and returns when the control plane is asked to stop, or with an error when a
// component ends by itself.
func (p *plane) serve(ctx context.Context, requests <-chan string) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case request := <-requests:
			if err := p.answer(ctx, request); err != nil {
				if ctx.Err() != nil {
					return nil
				}
				return err
			}
		case gone := <-p.died:
			return p.ended(gone)
		case err := <-p.etcd.Err():
			return fmt.Errorf("etcd: %w", err)
		}
	}
}

// answer stops the component of a request, or starts it again and waits until it is ready.
func (p *plane) answer(ctx context.Context, request string) error {
	ctx, cancel := context.WithTimeout(ctx, p.within)
	defer cancel()
	verb, name, _ := strings.Cut(request, " ")
	switch {
	case verb == "stop":
		if err := p.halt(ctx, name); err != nil {
			return err
		}
	case verb == "start" && name == "kube-scheduler":
		if err := p.launch(name, p.schedulerArguments()); err != nil {
			return err
		}
		if err := p.ready(ctx, name, "/readyz"); err != nil {
			return err
		}
	default:
		return fmt.Errorf("can't %q", request)
	}
	fmt.Println(name)
	return nil
}

// halt kills a component, so that it leaves everything as it is, and returns when it is gone.
func (p *plane) halt(ctx context.Context, name string) error {
	for i, one := range p.running {
		if one.name != name {
			continue
		}
		p.running = append(p.running[:i], p.running[i+1:]...)
		_ = one.command.Process.Kill()
		for {
			select {
			case gone := <-p.died:
				if gone == one {
					return nil
				}
				return p.ended(gone)
			case <-ctx.Done():
				return fmt.Errorf("%s doesn't end: %w", name, ctx.Err())
			}
		}
	}
	return fmt.Errorf("%s doesn't run", name)
}

// stop ends all components, the last started first, and removes a temporary folder.
func (p *plane) stop() {
	for i := len(p.running) - 1; i >= 0; i-- {
		if err := p.running[i].command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			_ = p.running[i].command.Process.Kill()
		}
	}
	deadline := time.After(stopGrace)
	for _, one := range p.running {
		select {
		case <-one.done:
		case <-deadline:
			for _, slow := range p.running {
				_ = slow.command.Process.Kill()
			}
			<-one.done
		}
	}
	if p.etcd != nil {
		p.etcd.Close()
	}
	if p.temporary {
		_ = os.RemoveAll(p.dir)
	}
}
