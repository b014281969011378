package main

import (
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	"k8s.io/kubernetes/pkg/capabilities"
	services "k8s.io/kubernetes/pkg/registry/core/service/storage"
)

// rejection is why an object is not accepted.
type rejection struct {
	stage string
	cause error
}

func (r *rejection) Error() string { return r.cause.Error() }

// server decides requests, with the plugins of the cluster of the latest line that has one.
type server struct {
	strict, lenient runtime.Serializer
	services        *services.REST
	plugins         *plugins
}

func newServer() (*server, error) {
	registry, err := newServices()
	if err != nil {
		return nil, err
	}
	info, ok := runtime.SerializerInfoForMediaType(legacyscheme.Codecs.SupportedMediaTypes(), runtime.ContentTypeJSON)
	if !ok {
		return nil, errors.New("there is no decoder of JSON")
	}
	// Clusters allow privileged containers, although it is not the default: the control plane itself needs them.
	capabilities.Setup(true, 0)
	return &server{strict: info.StrictSerializer, lenient: info.Serializer, services: registry}, nil
}

func (s *server) close() {
	if s.plugins != nil {
		s.plugins.stop()
		s.plugins = nil
	}
}

// answer decides one line.
func (s *server) answer(line []byte) answer {
	var given query
	if err := json.Unmarshal(line, &given); err != nil {
		return answer{Error: err.Error()}
	}
	if given.Cluster != nil {
		s.close()
		var err error
		if s.plugins, err = newPlugins(given.Cluster, given.Configuration); err != nil {
			return answer{ID: given.ID, Error: err.Error()}
		}
	}
	result := answer{ID: given.ID}
	noted := &warnings{}
	served, err := s.decided(given, noted)
	result.Warnings = *noted
	var rejected *rejection
	switch {
	case errors.As(err, &rejected):
		result.Stage, result.Messages = rejected.stage, messages(rejected.cause)
	case err != nil:
		result.Error = err.Error()
	default:
		result.Accepted = true
		if given.Served {
			result.Served = served
		}
	}
	return result
}

// messages are the single causes of an error, each with its field.
func messages(err error) []string {
	var all []string
	var status *apierrors.StatusError
	if errors.As(err, &status) && status.ErrStatus.Details != nil {
		for _, cause := range status.ErrStatus.Details.Causes {
			all = append(all, cause.Field+": "+cause.Message)
		}
	}
	if strict, ok := runtime.AsStrictDecodingError(err); ok {
		for _, each := range strict.Errors() {
			all = append(all, each.Error())
		}
	}
	if all == nil {
		all = []string{err.Error()}
	}
	return all
}

// decided is decide, but a panic is an error, as it is to a client of the API server.
func (s *server) decided(given query, noted *warnings) (served runtime.Object, err error) {
	defer func() {
		if found := recover(); found != nil {
			err = fmt.Errorf("panic: %v", found)
		}
	}()
	return s.decide(given, noted)
}

// decide gives the object as it is served then, or why it is rejected.
func (s *server) decide(given query, noted *warnings) (runtime.Object, error) {
	body := []byte(given.Object)
	if given.Text != "" {
		body = []byte(given.Text)
	}
	version, known, err := kindOf(body)
	if err != nil {
		return nil, &rejection{"decode", err}
	}
	var old runtime.Object
	if given.Operation == "update" {
		if old, err = decode(s.lenient, given.Old, version); err != nil {
			return nil, fmt.Errorf("old: %w", err)
		}
	}
	object, err := decode(s.strict, body, version)
	if err != nil {
		return nil, &rejection{"decode", err}
	}
	made := newCall(known, version, object, old, noted)
	if old == nil {
		err = s.create(made)
	} else {
		err = s.update(made)
	}
	if err != nil {
		return nil, err
	}
	return legacyscheme.Scheme.ConvertToVersion(object, version.GroupVersion())
}

// kindOf is what an object says of its kind. The decoder itself says what else is wrong with it.
func kindOf(body []byte) (schema.GroupVersionKind, kind, error) {
	var types metav1.TypeMeta
	if err := json.Unmarshal(body, &types); err != nil {
		return schema.GroupVersionKind{}, kind{}, err
	}
	version := schema.FromAPIVersionAndKind(types.APIVersion, types.Kind)
	known, ok := kinds[version.GroupKind()]
	if !ok || !legacyscheme.Scheme.Recognizes(version) {
		return version, known, fmt.Errorf("no matches for kind %q in version %q", types.Kind, types.APIVersion)
	}
	return version, known, nil
}

// decode reads an object, fills in its defaults, and gives it in the internal version.
func decode(serializer runtime.Serializer, body []byte, version schema.GroupVersionKind) (runtime.Object, error) {
	hub := schema.GroupVersion{Group: version.Group, Version: runtime.APIVersionInternal}
	object, _, err := legacyscheme.Codecs.DecoderToVersion(serializer, hub).Decode(body, &version, nil)
	return object, err
}

// create does what the handler and the registry do, in their order.
func (s *server) create(made *call) error {
	if err := s.plugins.mutate(made); err != nil {
		return err
	}
	if made.kind.resource == "services" {
		if _, err := s.services.BeginCreate(made.context, made.object, &metav1.CreateOptions{DryRun: dry}); err != nil {
			return &rejection{"validate", err}
		}
	}
	if err := rest.BeforeCreate(made.kind.strategy, made.context, made.object); err != nil {
		return &rejection{"validate", err}
	}
	return s.plugins.validate(made)
}

// update is as create, for an object that exists.
func (s *server) update(made *call) error {
	if err := s.plugins.mutate(made); err != nil {
		return err
	}
	if made.kind.resource == "services" {
		options := &metav1.UpdateOptions{DryRun: dry}
		if _, err := s.services.BeginUpdate(made.context, made.object, made.old, options); err != nil {
			return &rejection{"validate", err}
		}
	}
	if err := rest.BeforeUpdate(made.kind.strategy, made.context, made.object, made.old); err != nil {
		return &rejection{"validate", err}
	}
	return s.plugins.validate(made)
}
