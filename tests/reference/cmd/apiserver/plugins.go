package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/admission/initializer"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/admission/plugin/resourcequota"
	quota "k8s.io/apiserver/pkg/quota/v1"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/plugin/pkg/admission/defaulttolerationseconds"
	"k8s.io/kubernetes/plugin/pkg/admission/limitranger"
	"k8s.io/kubernetes/plugin/pkg/admission/podnodeselector"
	"k8s.io/kubernetes/plugin/pkg/admission/priority"
	"k8s.io/kubernetes/plugin/pkg/admission/runtimeclass"
	"k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity"
	"k8s.io/kubernetes/plugin/pkg/admission/serviceaccount"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/persistentvolume/resize"
	"k8s.io/kubernetes/plugin/pkg/admission/storage/storageclass/setdefault"
)

// alwaysOn are the plugins that every cluster has, in their order.
var alwaysOn = []string{
	lifecycle.PluginName,
	limitranger.PluginName,
	serviceaccount.PluginName,
	podsecurity.PluginName,
	podnodeselector.PluginName,
	priority.PluginName,
	defaulttolerationseconds.PluginName,
	setdefault.PluginName,
	resize.PluginName,
	runtimeclass.PluginName,
	resourcequota.PluginName,
}

// plugins are a cluster's admission plugins. Without a cluster there are none.
type plugins struct {
	chain   admission.Interface
	stopped chan struct{}
}

// newPlugins makes the plugins of a cluster, with informers that have all its objects. ServiceAccount runs where the
// cluster has an account, and PodNodeSelector, which is off by default, where it has a configuration.
func newPlugins(objects []json.RawMessage, configuration map[string]json.RawMessage) (*plugins, error) {
	var all []runtime.Object
	wanted := map[string]bool{podnodeselector.PluginName: configuration[podnodeselector.PluginName] != nil}
	for _, text := range objects {
		object, version, err := legacyscheme.Codecs.UniversalDeserializer().Decode(text, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("cluster: %w", err)
		}
		legacyscheme.Scheme.Default(object)
		all = append(all, object)
		if version.Kind == "ServiceAccount" {
			wanted[serviceaccount.PluginName] = true
		}
	}
	var names []string
	for _, name := range alwaysOn {
		optional := name == serviceaccount.PluginName || name == podnodeselector.PluginName
		if !optional || wanted[name] {
			names = append(names, name)
		}
	}
	registry := admission.NewPlugins()
	for _, register := range []func(*admission.Plugins){
		lifecycle.Register, limitranger.Register, serviceaccount.Register, podsecurity.Register,
		podnodeselector.Register, priority.Register, defaulttolerationseconds.Register, setdefault.Register,
		resize.Register, runtimeclass.Register, resourcequota.Register,
	} {
		register(registry)
	}
	made := &plugins{stopped: make(chan struct{})}
	api := fake.NewSimpleClientset(all...)
	factory := informers.NewSharedInformerFactory(api, 0)
	initializers, err := newInitializers(api, factory, made.stopped)
	if err != nil {
		return nil, err
	}
	if made.chain, err = registry.NewFromPlugins(names, configured(configuration), initializers, nil); err != nil {
		return nil, err
	}
	factory.Start(made.stopped)
	factory.WaitForCacheSync(made.stopped)
	return made, nil
}

// configured gives each plugin its configuration, by its name.
type configured map[string]json.RawMessage

func (c configured) ConfigFor(name string) (io.Reader, error) {
	if text := c[name]; text != nil {
		return bytes.NewReader(text), nil
	}
	return nil, nil
}

func (p *plugins) stop() { close(p.stopped) }

func (p *plugins) mutate(made *call) error {
	if p == nil {
		return nil
	}
	chain, ok := p.chain.(admission.MutationInterface)
	if !ok || !chain.Handles(made.attributes.GetOperation()) {
		return nil
	}
	if err := chain.Admit(made.context, made.attributes, scheme); err != nil {
		return &rejection{"admission", err}
	}
	return nil
}

func (p *plugins) validate(made *call) error {
	if p == nil {
		return nil
	}
	var err error
	if made.old == nil {
		err = rest.AdmissionToValidateObjectFunc(p.chain, made.attributes, scheme)(made.context, made.object.DeepCopyObject())
	} else {
		err = rest.AdmissionToValidateObjectUpdateFunc(p.chain, made.attributes, scheme)(
			made.context, made.object.DeepCopyObject(), made.old.DeepCopyObject())
	}
	if err != nil {
		return &rejection{"admission", err}
	}
	return nil
}

var scheme = admission.NewObjectInterfacesFromScheme(legacyscheme.Scheme)

// quotaInitializer tells the plugin of quotas how objects count.
type quotaInitializer struct{ evaluators quota.Configuration }

func (q quotaInitializer) Initialize(plugin admission.Interface) {
	if wants, ok := plugin.(initializer.WantsQuotaConfiguration); ok {
		wants.SetQuotaConfiguration(q.evaluators)
	}
}
