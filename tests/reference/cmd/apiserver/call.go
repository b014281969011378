package main

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/apiserver/pkg/warning"
)

var client = &user.DefaultInfo{Name: "admin", Groups: []string{user.SystemPrivilegedGroup, user.AllAuthenticated}}

// dry keeps allocators and quotas as they are.
var dry = []string{metav1.DryRunAll}

// warnings are those that a client is shown.
type warnings []string

func (w *warnings) AddWarning(_, text string) { *w = append(*w, text) }

// call is a request with all that is derived from its object.
type call struct {
	kind kind
	// object and old are internal; old is nil on create.
	object, old runtime.Object
	context     context.Context
	attributes  admission.Attributes
}

// newCall completes a request by what its URL says, and by what the handler does before it asks plugins.
func newCall(known kind, version schema.GroupVersionKind, object, old runtime.Object, noted *warnings) *call {
	fields := accessor(object)
	named, operation, options := fields, admission.Create, runtime.Object(&metav1.CreateOptions{DryRun: dry})
	verb := "create"
	if old != nil {
		named = accessor(old)
		inherit(fields, named)
		verb, operation, options = "update", admission.Update, &metav1.UpdateOptions{DryRun: dry}
	} else {
		rest.WipeObjectMetaSystemFields(fields)
		rest.FillObjectMetaSystemFields(fields)
		if fields.GetName() == "" && fields.GetGenerateName() != "" {
			fields.SetName(known.strategy.GenerateName(fields.GetGenerateName()))
		}
	}
	scope := ""
	if known.strategy.NamespaceScoped() {
		if fields.GetNamespace() == "" {
			fields.SetNamespace(metav1.NamespaceDefault)
		}
		scope = named.GetNamespace()
	}
	resource := version.GroupVersion().WithResource(known.resource)
	ctx := request.WithUser(context.Background(), client)
	ctx = request.WithNamespace(ctx, scope)
	ctx = request.WithRequestInfo(ctx, &request.RequestInfo{
		IsResourceRequest: true,
		Verb:              verb,
		APIPrefix:         "api",
		APIGroup:          version.Group,
		APIVersion:        version.Version,
		Namespace:         scope,
		Resource:          known.resource,
		Name:              named.GetName(),
	})
	if known.resource == "namespaces" {
		scope = named.GetName()
	}
	return &call{known, object, old, warning.WithWarningRecorder(ctx, noted), admission.NewAttributesRecord(
		object, old, version, scope, named.GetName(), resource, "", operation, options, true, client)}
}

func accessor(object runtime.Object) metav1.Object {
	fields, err := meta.Accessor(object)
	if err != nil {
		panic(err)
	}
	return fields
}

// inherit gives a new object what a patch leaves as it is, and the cluster fills in if an old object lacks it.
func inherit(fields, old metav1.Object) {
	if old.GetResourceVersion() == "" {
		old.SetResourceVersion("1")
	}
	if old.GetUID() == "" {
		old.SetUID("00000000-0000-0000-0000-000000000001")
	}
	if old.GetNamespace() == "" && fields.GetNamespace() != "" {
		old.SetNamespace(fields.GetNamespace())
	}
	if fields.GetResourceVersion() == "" {
		fields.SetResourceVersion(old.GetResourceVersion())
	}
}
