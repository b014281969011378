package main

import (
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	storagev1defaults "k8s.io/kubernetes/pkg/apis/storage/v1"
	kjson "sigs.k8s.io/json"
	vcv1beta1 "volcano.sh/apis/pkg/apis/scheduling/v1beta1"
)

// kinds are the objects that the scheduler looks at; all others are passed over.
var kinds = map[string]func() runtime.Object{
	"Pod":                   func() runtime.Object { return &v1.Pod{} },
	"Node":                  func() runtime.Object { return &v1.Node{} },
	"Namespace":             func() runtime.Object { return &v1.Namespace{} },
	"Service":               func() runtime.Object { return &v1.Service{} },
	"ReplicationController": func() runtime.Object { return &v1.ReplicationController{} },
	"PersistentVolume":      func() runtime.Object { return &v1.PersistentVolume{} },
	"PersistentVolumeClaim": func() runtime.Object { return &v1.PersistentVolumeClaim{} },
	"ResourceQuota":         func() runtime.Object { return &v1.ResourceQuota{} },
	"ReplicaSet":            func() runtime.Object { return &appsv1.ReplicaSet{} },
	"StatefulSet":           func() runtime.Object { return &appsv1.StatefulSet{} },
	"StorageClass":          func() runtime.Object { return &storagev1.StorageClass{} },
	"CSINode":               func() runtime.Object { return &storagev1.CSINode{} },
	"CSIDriver":             func() runtime.Object { return &storagev1.CSIDriver{} },
	"PriorityClass":         func() runtime.Object { return &schedulingv1.PriorityClass{} },
	"PodGroup":              func() runtime.Object { return &vcv1beta1.PodGroup{} },
	"Queue":                 func() runtime.Object { return &vcv1beta1.Queue{} },
}

// defaulting fills in what the API server fills in whatever the cluster: the defaults of the API types.
var defaulting = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{
		v1.AddToScheme, storagev1.AddToScheme, corev1defaults.RegisterDefaults, storagev1defaults.RegisterDefaults,
	} {
		utilruntime.Must(register(scheme))
	}
	return scheme
}()

// decodeObjects reads objects in their order.
func decodeObjects(data []json.RawMessage) ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, raw := range data {
		object, err := decodeObject(raw)
		if err != nil {
			return nil, err
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	return objects, nil
}

// decodeObject reads one object. It returns nil for a kind that the scheduler does not look at.
func decodeObject(data []byte) (runtime.Object, error) {
	var head struct {
		metav1.TypeMeta `json:",inline"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, err
	}
	create, known := kinds[head.Kind]
	if !known {
		return nil, nil
	}
	object := create()
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, object); err != nil {
		return nil, fmt.Errorf("%s: %w", head.Kind, err)
	}
	meta := object.(metav1.Object)
	if meta.GetName() == "" {
		return nil, fmt.Errorf("%s without a name", head.Kind)
	}
	if meta.GetUID() == "" {
		meta.SetUID(types.UID(head.Kind + "/" + meta.GetNamespace() + "/" + meta.GetName()))
	}
	// The volume binder refuses objects without one, which an API server never has.
	if meta.GetResourceVersion() == "" {
		meta.SetResourceVersion("1")
	}
	meta.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	defaulting.Default(object)
	return object, nil
}

// resourceOf names the API's resource of an object, for those whose informers the scheduler has.
func resourceOf(object runtime.Object) schema.GroupVersionResource {
	switch object.(type) {
	case *v1.Pod:
		return v1.SchemeGroupVersion.WithResource("pods")
	case *v1.Node:
		return v1.SchemeGroupVersion.WithResource("nodes")
	case *v1.Namespace:
		return v1.SchemeGroupVersion.WithResource("namespaces")
	case *v1.Service:
		return v1.SchemeGroupVersion.WithResource("services")
	case *v1.ReplicationController:
		return v1.SchemeGroupVersion.WithResource("replicationcontrollers")
	case *v1.PersistentVolume:
		return v1.SchemeGroupVersion.WithResource("persistentvolumes")
	case *v1.PersistentVolumeClaim:
		return v1.SchemeGroupVersion.WithResource("persistentvolumeclaims")
	case *appsv1.ReplicaSet:
		return appsv1.SchemeGroupVersion.WithResource("replicasets")
	case *appsv1.StatefulSet:
		return appsv1.SchemeGroupVersion.WithResource("statefulsets")
	case *storagev1.StorageClass:
		return storagev1.SchemeGroupVersion.WithResource("storageclasses")
	case *storagev1.CSINode:
		return storagev1.SchemeGroupVersion.WithResource("csinodes")
	case *storagev1.CSIDriver:
		return storagev1.SchemeGroupVersion.WithResource("csidrivers")
	}
	return schema.GroupVersionResource{}
}
