// Package kubernetes has no code: its tests check the manifests beside them, and run what is in them.
package kubernetes

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	"sigs.k8s.io/kustomize/api/krusty"
	kustomize "sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// A kit is all that is applied to a cluster: one of the sets of nodes, the secret, and the programs.
type kit struct {
	nodes      int
	namespace  *corev1.Namespace
	service    *corev1.Service
	redis      *corev1.ConfigMap // the servers' configuration
	clients    *corev1.ConfigMap // that of the command
	secret     *corev1.Secret
	set        *appsv1.StatefulSet
	budget     *policyv1.PodDisruptionBudget
	network    *networkingv1.NetworkPolicy
	prepare    *batchv1.Job
	nightly    *batchv1.CronJob
	scheduler  *appsv1.Deployment
	namespaces map[string]bool // of all objects
}

// sets has the overlays and their numbers of nodes.
var sets = map[string]int{"three": 3, "five": 5}

// kits builds what kubectl apply -k would apply.
var kits = sync.OnceValues(func() (map[string]*kit, error) {
	built := map[string]*kit{}
	for dir, n := range sets {
		k := &kit{nodes: n, namespaces: map[string]bool{}}
		for _, from := range []string{dir, "programs"} {
			made, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), from)
			if err != nil {
				return nil, err
			}
			for _, r := range made.Resources() {
				text, err := r.AsYAML()
				if err == nil {
					err = k.add(text)
				}
				if err != nil {
					return nil, err
				}
			}
		}
		secret, err := os.ReadFile("secret.yaml")
		if err == nil {
			err = k.add(secret)
		}
		if err != nil {
			return nil, err
		}
		built[dir] = k
	}
	return built, nil
})

// add decodes one object, and allows no field that its type has not, and none twice.
func (k *kit) add(text []byte) error {
	var head struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(text, &head); err != nil {
		return err
	}
	if head.Kind != "Namespace" {
		k.namespaces[head.Metadata.Namespace] = true
	}
	object := k.object(head.Kind, head.Metadata.Name)
	if object == nil {
		return &unknownError{head.Kind, head.Metadata.Name}
	}
	return yaml.UnmarshalStrict(text, object)
}

// object is where an object of the kit goes; nil: it is none.
func (k *kit) object(kind, name string) any {
	for _, o := range []struct {
		kind, name string
		to         any
	}{
		{"Namespace", "redlock", &k.namespace},
		{"Service", "redlock", &k.service},
		{"ConfigMap", "redlock-redis", &k.redis},
		{"ConfigMap", "redlock", &k.clients},
		{"Secret", "redlock", &k.secret},
		{"StatefulSet", "redlock", &k.set},
		{"PodDisruptionBudget", "redlock", &k.budget},
		{"NetworkPolicy", "redlock", &k.network},
		{"Job", "redlock-prepare", &k.prepare},
		{"CronJob", "nightly", &k.nightly},
		{"Deployment", "scheduler", &k.scheduler},
	} {
		if o.kind == kind && o.name == name {
			return o.to
		}
	}
	return nil
}

type unknownError struct{ kind, name string }

func (e *unknownError) Error() string { return "the kit has no " + e.kind + " " + e.name }

// each runs a test on each set of nodes.
func each(t *testing.T, f func(t *testing.T, k *kit)) {
	t.Helper()
	all, err := kits()
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range all {
		t.Run(name, func(t *testing.T) { f(t, k) })
	}
}

// A pod is a pod template of the kit.
type pod struct {
	name     string
	meta     map[string]string // its labels
	selector map[string]string // of what owns it; nil: a Job's, which Kubernetes makes
	spec     corev1.PodSpec
}

func (k *kit) pods() []pod {
	of := func(name string, t corev1.PodTemplateSpec, selector map[string]string) pod {
		return pod{name, t.Labels, selector, t.Spec}
	}
	return []pod{
		of("redlock", k.set.Spec.Template, k.set.Spec.Selector.MatchLabels),
		of("redlock-prepare", k.prepare.Spec.Template, nil),
		of("nightly", k.nightly.Spec.JobTemplate.Spec.Template, nil),
		of("scheduler", k.scheduler.Spec.Template, k.scheduler.Spec.Selector.MatchLabels),
	}
}

func (p pod) containers() []corev1.Container {
	return slices.Concat(p.spec.InitContainers, p.spec.Containers)
}

// TestFiles: each file is what Kubernetes knows, without a field that it does not know, and belongs to the kit.
func TestFiles(t *testing.T) {
	files, err := filepath.Glob("*/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if files = append(files, "secret.yaml"); len(files) < 14 {
		t.Errorf("%d files", len(files))
	}
	resources := map[string]bool{"secret.yaml": true}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if filepath.Base(file) == "kustomization.yaml" {
			var k kustomize.Kustomization
			if err := yaml.UnmarshalStrict(text, &k); err != nil {
				t.Errorf("%s: %v", file, err)
			}
			for _, r := range k.Resources {
				resources[filepath.Join(filepath.Dir(file), r)] = true
			}
			resources[file] = true
			continue
		}
		if err := (&kit{namespaces: map[string]bool{}}).add(text); err != nil {
			t.Errorf("%s: %v", file, err)
		}
		if bytes.Contains(text, []byte("\n---")) {
			t.Errorf("%s has several objects", file)
		}
	}
	for _, file := range files {
		if !resources[file] {
			t.Errorf("no kustomization.yaml names %s", file)
		}
	}
	each(t, func(t *testing.T, k *kit) {
		v := reflect.ValueOf(k).Elem()
		for i := range v.NumField() {
			if v.Field(i).Kind() == reflect.Pointer && v.Field(i).IsNil() {
				t.Errorf("the kit has no %s", v.Type().Field(i).Name)
			}
		}
		if len(k.namespaces) != 1 || !k.namespaces[k.namespace.Name] {
			t.Errorf("the objects are in the namespaces %v, and not all in %s", k.namespaces, k.namespace.Name)
		}
	})
}

// A field with a wrong name must not pass as one that is left out.
func TestFilesAreStrict(t *testing.T) {
	text, err := os.ReadFile("nodes/statefulset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{"minReadySecond: 15", "minReadySeconds: fifteen", "minReadySeconds: 15\n  minReadySeconds: 16"} {
		if err := (&kit{namespaces: map[string]bool{}}).add([]byte(strings.Replace(string(text), "minReadySeconds: 15", wrong, 1))); err == nil {
			t.Errorf("%s passes", wrong)
		}
	}
}
