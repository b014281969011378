package main

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	_ "k8s.io/kubernetes/pkg/apis/apps/install"
	_ "k8s.io/kubernetes/pkg/apis/autoscaling/install"
	_ "k8s.io/kubernetes/pkg/apis/batch/install"
	_ "k8s.io/kubernetes/pkg/apis/core/install"
	_ "k8s.io/kubernetes/pkg/apis/node/install"
	_ "k8s.io/kubernetes/pkg/apis/policy/install"
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"
	_ "k8s.io/kubernetes/pkg/apis/storage/install"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

// strategy is how the registry creates and updates objects of a kind.
type strategy interface {
	rest.RESTCreateStrategy
	rest.RESTUpdateStrategy
}

type kind struct {
	resource string
	strategy strategy
}

var kinds = map[schema.GroupKind]kind{
	{Kind: "LimitRange"}:                                    {"limitranges", limitrange.Strategy},
	{Kind: "Namespace"}:                                     {"namespaces", namespace.Strategy},
	{Kind: "PersistentVolumeClaim"}:                         {"persistentvolumeclaims", persistentvolumeclaim.Strategy},
	{Kind: "Pod"}:                                           {"pods", pod.Strategy},
	{Kind: "ReplicationController"}:                         {"replicationcontrollers", replicationcontroller.Strategy},
	{Kind: "ResourceQuota"}:                                 {"resourcequotas", resourcequota.Strategy},
	{Kind: "Service"}:                                       {"services", service.Strategy},
	{Group: "apps", Kind: "DaemonSet"}:                      {"daemonsets", daemonset.Strategy},
	{Group: "apps", Kind: "Deployment"}:                     {"deployments", deployment.Strategy},
	{Group: "apps", Kind: "ReplicaSet"}:                     {"replicasets", replicaset.Strategy},
	{Group: "apps", Kind: "StatefulSet"}:                    {"statefulsets", statefulset.Strategy},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}: {"horizontalpodautoscalers", horizontalpodautoscaler.Strategy},
	{Group: "batch", Kind: "CronJob"}:                       {"cronjobs", cronjob.Strategy},
	{Group: "batch", Kind: "Job"}:                           {"jobs", job.Strategy},
	{Group: "policy", Kind: "PodDisruptionBudget"}:          {"poddisruptionbudgets", poddisruptionbudget.Strategy},
	{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:     {"priorityclasses", priorityclass.Strategy},
	{Group: "storage.k8s.io", Kind: "StorageClass"}:         {"storageclasses", storageclass.Strategy},
}
