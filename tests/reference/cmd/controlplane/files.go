package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"fmt"
	"os"
	"strings"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodelease "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"
	"sigs.k8s.io/yaml"
)

// podDelete is the stage in which a fake kubelet lets a deleted pod go: when its grace period is over, which is the
// time in its deletionTimestamp.
const podDelete = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-delete
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - key: '.metadata.deletionTimestamp'
      operator: 'Exists'
  delay:
    durationFrom:
      expressionFrom: '.metadata.deletionTimestamp'
  next:
    delete: true
`

// writeFiles writes what the components read: certificates and keys, kubeconfig, and their configurations.
func (p *plane) writeFiles() error {
	ca, err := newAuthority()
	if err != nil {
		return err
	}
	if err := os.WriteFile(p.path("ca.crt"), ca.pem, 0o600); err != nil {
		return err
	}
	if err := ca.serving(p.path("server.crt"), p.path("server.key")); err != nil {
		return err
	}
	if err := ca.client(p.path("client.crt"), p.path("client.key")); err != nil {
		return err
	}
	tokens, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	if err := writeKey(p.path("tokens.key"), tokens); err != nil {
		return err
	}
	if err := p.writeKubeconfig(); err != nil {
		return err
	}
	if err := p.writeSchedulerConfig(); err != nil {
		return err
	}
	stages := []string{nodefast.DefaultNodeInit, nodelease.DefaultNodeHeartbeatWithLease, podfast.DefaultPodReady, podDelete}
	if p.endJobs {
		stages = append(stages, podfast.DefaultPodComplete)
	}
	return os.WriteFile(p.path("kwok.yaml"), []byte(strings.Join(stages, "\n---\n")), 0o600)
}

// writeKubeconfig writes one file with everything in it, so that it can be read from anywhere.
func (p *plane) writeKubeconfig() error {
	content := map[string][]byte{}
	for _, name := range []string{"ca.crt", "client.crt", "client.key"} {
		data, err := os.ReadFile(p.path(name))
		if err != nil {
			return err
		}
		content[name] = data
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["controlplane"] = &clientcmdapi.Cluster{Server: p.server(), CertificateAuthorityData: content["ca.crt"]}
	config.AuthInfos["admin"] = &clientcmdapi.AuthInfo{ClientCertificateData: content["client.crt"], ClientKeyData: content["client.key"]}
	config.Contexts["controlplane"] = &clientcmdapi.Context{Cluster: "controlplane", AuthInfo: "admin"}
	config.CurrentContext = "controlplane"
	return clientcmd.WriteToFile(*config, p.path("kubeconfig"))
}

// writeSchedulerConfig writes the scheduler's configuration: the one given, with this control plane's API server and
// without leader election.
func (p *plane) writeSchedulerConfig() error {
	config := map[string]any{"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
	if p.schedulerConfig != "" {
		text, err := os.ReadFile(p.schedulerConfig)
		if err != nil {
			return err
		}
		if err := yaml.Unmarshal(text, &config); err != nil {
			return fmt.Errorf("%s: %w", p.schedulerConfig, err)
		}
	}
	config["clientConnection"] = map[string]any{"kubeconfig": p.path("kubeconfig"), "qps": 1000, "burst": 2000}
	config["leaderElection"] = map[string]any{"leaderElect": false}
	text, err := yaml.Marshal(config)
	if err != nil {
		return err
	}
	return os.WriteFile(p.path("scheduler.yaml"), text, 0o600)
}
