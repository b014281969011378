package main

import (
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	corev1defaults "k8s.io/kubernetes/pkg/apis/core/v1"
	storagev1defaults "k8s.io/kubernetes/pkg/apis/storage/v1"
	kjson "sigs.k8s.io/json"
)

// kinds are the objects that a scheduler looks at; all others are passed over. Later versions look at more.
var kinds = map[string]func() runtime.Object{
	"Pod":                   func() runtime.Object { return &v1.Pod{} },
	"Node":                  func() runtime.Object { return &v1.Node{} },
	"Namespace":             func() runtime.Object { return &v1.Namespace{} },
	"Service":               func() runtime.Object { return &v1.Service{} },
	"ReplicationController": func() runtime.Object { return &v1.ReplicationController{} },
	"PersistentVolume":      func() runtime.Object { return &v1.PersistentVolume{} },
	"PersistentVolumeClaim": func() runtime.Object { return &v1.PersistentVolumeClaim{} },
	"ReplicaSet":            func() runtime.Object { return &appsv1.ReplicaSet{} },
	"StatefulSet":           func() runtime.Object { return &appsv1.StatefulSet{} },
	"PodDisruptionBudget":   func() runtime.Object { return &policyv1.PodDisruptionBudget{} },
	"StorageClass":          func() runtime.Object { return &storagev1.StorageClass{} },
	"CSINode":               func() runtime.Object { return &storagev1.CSINode{} },
	"CSIDriver":             func() runtime.Object { return &storagev1.CSIDriver{} },
	"CSIStorageCapacity":    func() runtime.Object { return &storagev1.CSIStorageCapacity{} },
	"VolumeAttachment":      func() runtime.Object { return &storagev1.VolumeAttachment{} },
}

// defaulting fills in what the API server fills in whatever the cluster: the defaults of the API types.
var defaulting = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, register := range []func(*runtime.Scheme) error{
		v1.AddToScheme, storagev1.AddToScheme,
		corev1defaults.RegisterDefaults, storagev1defaults.RegisterDefaults,
	} {
		utilruntime.Must(register(scheme))
	}
	return scheme
}()

// decodeObject reads one object. It returns nil for a kind that no scheduler looks at.
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
	meta.SetManagedFields(nil)
	object.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	defaulting.Default(object)
	if pod, isPod := object.(*v1.Pod); isPod {
		return pod, completeRequests(pod)
	}
	return object, nil
}

// decodePod reads the pod to place; its kind may be left out.
func decodePod(data []byte) (*v1.Pod, error) {
	pod := &v1.Pod{}
	if len(data) == 0 {
		return nil, errors.New("no pod given")
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, pod); err != nil {
		return nil, fmt.Errorf("pod: %w", err)
	}
	if pod.Kind != "" && pod.Kind != "Pod" {
		return nil, fmt.Errorf("pod: its kind is %s", pod.Kind)
	}
	if pod.UID == "" {
		pod.UID = types.UID("Pod/" + pod.Namespace + "/" + pod.Name)
	}
	pod.TypeMeta = metav1.TypeMeta{}
	defaulting.Default(pod)
	return pod, completeRequests(pod)
}

// decodeObjects reads objects, with Lists taken apart, in their order.
func decodeObjects(data []json.RawMessage) ([]runtime.Object, error) {
	var objects []runtime.Object
	for _, raw := range data {
		var list struct {
			Kind  string            `json:"kind"`
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(raw, &list); err != nil {
			return nil, err
		}
		if strings.HasSuffix(list.Kind, "List") {
			items, err := decodeObjects(list.Items)
			if err != nil {
				return nil, err
			}
			objects = append(objects, items...)
			continue
		}
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

// readSnapshot reads a cluster from a file of JSON documents (one List, or one object per document), plain or gzipped.
func readSnapshot(path string) ([]runtime.Object, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	buffered := bufio.NewReaderSize(file, 1<<20)
	var reader io.Reader = buffered
	if magic, _ := buffered.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
		if reader, err = gzip.NewReader(buffered); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	var documents []json.RawMessage
	for decoder := json.NewDecoder(reader); ; {
		var document json.RawMessage
		if err := decoder.Decode(&document); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		documents = append(documents, document)
	}
	objects, err := decodeObjects(documents)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return objects, nil
}

// identity tells objects apart: type, namespace and name.
func identity(object runtime.Object) string {
	meta := object.(metav1.Object)
	return fmt.Sprintf("%T/%s/%s", object, meta.GetNamespace(), meta.GetName())
}

// overlay lays own objects over a cluster: an object of the same kind and name takes the other's place, the rest follow.
func overlay(cluster, own []runtime.Object) []runtime.Object {
	if len(own) == 0 {
		return slices.Clone(cluster)
	}
	replacement := make(map[string]runtime.Object, len(own))
	for _, object := range own {
		replacement[identity(object)] = object
	}
	result := make([]runtime.Object, 0, len(cluster)+len(own))
	for _, object := range cluster {
		key := identity(object)
		if other, found := replacement[key]; found {
			delete(replacement, key)
			object = other
		}
		result = append(result, object)
	}
	for _, object := range own {
		if _, left := replacement[identity(object)]; left {
			result = append(result, object)
		}
	}
	return result
}
