package kubernetes

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	psapi "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
)

// flag returns the value of a flag of a command.
func flag(command []string, name string) string {
	if i := slices.Index(command, name); i >= 0 && i+1 < len(command) {
		return command[i+1]
	}
	return ""
}

// setting returns the value of a setting in a redis.conf.
func setting(conf, name string) string {
	if m := regexp.MustCompile(`(?m)^` + name + ` (.*)$`).FindStringSubmatch(conf); m != nil {
		return m[1]
	}
	return ""
}

// names returns the URLs by which the pods of the set have their names.
func (k *kit) names() (urls []string) {
	for i := range k.nodes {
		urls = append(urls, fmt.Sprintf("redis://%s-%d.%s.%s.svc:%d", k.set.Name, i, k.set.Spec.ServiceName, k.namespace.Name, k.service.Spec.Ports[0].Port))
	}
	return urls
}

// quarantine is how long a node of a new set has no vote that was restarted: docs/operations.md#settings.
func (k *kit) quarantine(t *testing.T) time.Duration {
	longest, err := time.ParseDuration(flag(k.prepare.Spec.Template.Spec.InitContainers[0].Command, "--max-ttl"))
	if err != nil {
		t.Fatal(err)
	}
	return max(longest+longest/100+2*time.Millisecond, 2*time.Second)
}

// TestSet: the number of nodes, their names, where they are, and that no two are without a vote together because
// somebody restarts them.
func TestSet(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		if n := int(*k.set.Spec.Replicas); n != k.nodes || n%2 == 0 {
			t.Errorf("%d replicas, want %d, and an odd number", n, k.nodes)
		}
		var listed []string
		for _, m := range regexp.MustCompile(`(?m)^node = (\S+)$`).FindAllStringSubmatch(k.clients.Data["redlock.conf"], -1) {
			listed = append(listed, m[1])
		}
		if want := k.names(); !slices.Equal(listed, want) {
			t.Errorf("the programs have the nodes\n%q\nand the pods are\n%q", listed, want)
		}
		if k.set.Spec.ServiceName != k.service.Name || k.service.Spec.ClusterIP != "None" || !k.service.Spec.PublishNotReadyAddresses {
			t.Error("the service does not name each pod, or only while it is ready")
		}
		for what, selector := range map[string]map[string]string{
			"the service":    k.service.Spec.Selector,
			"the budget":     k.budget.Spec.Selector.MatchLabels,
			"the network":    k.network.Spec.PodSelector.MatchLabels,
			"the volumes":    k.set.Spec.VolumeClaimTemplates[0].Labels,
			"anti-affinity":  k.set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].LabelSelector.MatchLabels,
			"the zones":      k.set.Spec.Template.Spec.TopologySpreadConstraints[0].LabelSelector.MatchLabels,
			"the set itself": k.set.Spec.Selector.MatchLabels,
		} {
			if fmt.Sprint(selector) != fmt.Sprint(k.set.Spec.Template.Labels) {
				t.Errorf("%s: %v, and the pods have %v", what, selector, k.set.Spec.Template.Labels)
			}
		}
		if key := k.set.Spec.Template.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey; key != corev1.LabelHostname {
			t.Errorf("nodes are kept apart by %s", key)
		}
		if zones := k.set.Spec.Template.Spec.TopologySpreadConstraints[0]; zones.TopologyKey != corev1.LabelTopologyZone || zones.MaxSkew != 1 || zones.WhenUnsatisfiable != corev1.DoNotSchedule {
			t.Errorf("nodes are spread by %+v", zones)
		}

		quorum := k.nodes/2 + 1
		if drained := k.budget.Spec.MaxUnavailable.IntValue(); drained != 1 || k.nodes-drained < quorum {
			t.Errorf("a drain takes %d nodes of %d at once", drained, k.nodes)
		}
		if k.set.Spec.UpdateStrategy.Type != appsv1.RollingUpdateStatefulSetStrategyType || k.set.Spec.UpdateStrategy.RollingUpdate != nil {
			t.Errorf("an update is %+v", k.set.Spec.UpdateStrategy)
		}
		// An update goes on minReadySeconds after the pod is ready, and a drain when it is ready.
		pause := time.Duration(k.set.Spec.MinReadySeconds) * time.Second
		ready := time.Duration(k.set.Spec.Template.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds) * time.Second
		if q := k.quarantine(t); pause <= q || ready <= q {
			t.Errorf("the next node is restarted %v after one is ready, which it is %v after it was restarted; the quarantine is %v", pause, ready, q)
		}
	})
}

// TestRedis: the servers are as docs/operations.md says.
func TestRedis(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		conf, c := k.redis.Data["redis.conf"], k.set.Spec.Template.Spec.Containers[0]
		for name, want := range map[string]string{
			"appendonly": "yes", "appendfsync": "everysec", "maxmemory-policy": "noeviction", "save": `""`,
			"port":    fmt.Sprint(k.service.Spec.Ports[0].Port),
			"aclfile": c.VolumeMounts[1].MountPath + "/users.acl",
			"dir":     c.VolumeMounts[0].MountPath,
		} {
			if got := setting(conf, name); got != want {
				t.Errorf("redis.conf: %s is %q, want %q", name, got, want)
			}
		}
		var megabytes int64
		if _, err := fmt.Sscanf(setting(conf, "maxmemory"), "%dmb", &megabytes); err != nil {
			t.Fatal(err)
		}
		if limit := c.Resources.Limits.Memory().Value(); megabytes<<20 > limit/2 {
			t.Errorf("maxmemory is %d MiB, and the container has %d", megabytes, limit>>20)
		}
		if claim := k.set.Spec.VolumeClaimTemplates; len(claim) != 1 || claim[0].Name != c.VolumeMounts[0].Name {
			t.Errorf("the data is not on the volume of the pod: %+v", c.VolumeMounts)
		}
		if !slices.Equal(c.Command, []string{"redis-server", c.VolumeMounts[1].MountPath + "/redis.conf"}) {
			t.Errorf("the server is started by %q", c.Command)
		}
	})
}

// TestUsers: the user has the rights that docs/operations.md names, and its password is in no other file.
func TestUsers(t *testing.T) {
	page, err := os.ReadFile("../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	documented := regexp.MustCompile(`(?m)^user locks .*$`).FindString(string(page))
	off := regexp.MustCompile("`(user default off [^`]*)`").FindStringSubmatch(string(page))
	if documented == "" || off == nil {
		t.Fatal("docs/operations.md has no user for locks, or does not say how default is turned off")
	}
	each(t, func(t *testing.T, k *kit) {
		if got, want := k.secret.StringData["users.acl"], off[1]+"\n"+documented+"\n"; got != want {
			t.Errorf("users.acl is\n%s\nand docs/operations.md has\n%s", got, want)
		}
		if password := k.secret.StringData["password"]; !strings.Contains(documented, " >"+password+" ") {
			t.Errorf("the programs have another password, %q", password)
		}
		for name, text := range map[string]string{"clients.yaml": k.clients.Data["redlock.conf"], "redis.conf": k.redis.Data["redis.conf"]} {
			if strings.Contains(strings.ToLower(text), "password =") || strings.Contains(text, "requirepass") {
				t.Errorf("%s has a password", name)
			}
		}
		if conf := k.clients.Data["redlock.conf"]; !strings.Contains(conf, "\nuser = locks\n") || !strings.Contains(conf, "\npassword-file = password\n") {
			t.Errorf("redlock.conf does not name the user:\n%s", conf)
		}
	})
}

// TestNetwork: the programs reach the nodes, and nobody else does.
func TestNetwork(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		in := k.network.Spec.Ingress
		if len(in) != 1 || len(in[0].From) != 1 || len(in[0].Ports) != 1 || in[0].Ports[0].Port.IntVal != k.service.Spec.Ports[0].Port {
			t.Fatalf("the nodes are reached by %+v", in)
		}
		if !slices.Equal(k.network.Spec.PolicyTypes, []networkingv1.PolicyType{"Ingress", "Egress"}) || len(k.network.Spec.Egress) != 0 {
			t.Errorf("the nodes reach %+v", k.network.Spec.Egress)
		}
		for _, p := range k.pods() {
			reaches := true
			for label, value := range in[0].From[0].PodSelector.MatchLabels {
				reaches = reaches && p.meta[label] == value
			}
			if reaches != (p.name != "redlock") {
				t.Errorf("%s reaches the nodes: %v", p.name, reaches)
			}
		}
	})
}

// TestPods: each pod passes the strictest rules of Kubernetes, and has what the kit promises of each.
func TestPods(t *testing.T) {
	rules, err := policy.NewEvaluator(policy.DefaultChecks())
	if err != nil {
		t.Fatal(err)
	}
	image := regexp.MustCompile(`^[a-z]+:[a-z0-9.]+$`) // with a tag, and without the host of a registry
	each(t, func(t *testing.T, k *kit) {
		if level := k.namespace.Labels[psapi.EnforceLevelLabel]; level != string(psapi.LevelRestricted) {
			t.Errorf("the namespace allows %q", level)
		}
		for _, p := range k.pods() {
			template := corev1.PodTemplateSpec{Spec: p.spec}
			for _, r := range rules.EvaluatePod(psapi.LevelVersion{Level: psapi.LevelRestricted, Version: psapi.LatestVersion()}, &template.ObjectMeta, &template.Spec) {
				if !r.Allowed {
					t.Errorf("%s: %s: %s", p.name, r.ForbiddenReason, r.ForbiddenDetail)
				}
			}
			for label, value := range p.selector {
				if p.meta[label] != value {
					t.Errorf("%s: its pods have no label %s=%s", p.name, label, value)
				}
			}
			s := p.spec.SecurityContext
			if s.RunAsUser == nil || *s.RunAsUser == 0 || s.FSGroup == nil || *s.FSGroup != *s.RunAsUser {
				t.Errorf("%s runs as root, or with another group for its files", p.name)
			}
			if a := p.spec.AutomountServiceAccountToken; a == nil || *a {
				t.Errorf("%s has a token of the cluster, which it does not need", p.name)
			}
			volumes := map[string]bool{}
			for _, v := range p.spec.Volumes {
				volumes[v.Name] = true
				if v.Projected == nil || *v.Projected.DefaultMode != 0o440 {
					t.Errorf("%s: the files of %s can be read by each user", p.name, v.Name)
				}
				for _, source := range v.Projected.Sources {
					if c := source.ConfigMap; c != nil && c.Name != k.redis.Name && c.Name != k.clients.Name || source.Secret != nil && source.Secret.Name != k.secret.Name {
						t.Errorf("%s: there is no %+v", p.name, source)
					}
				}
			}
			if p.name == "redlock" {
				volumes[k.set.Spec.VolumeClaimTemplates[0].Name] = true
			} else if g := p.spec.TerminationGracePeriodSeconds; p.name != "redlock-prepare" && (g == nil || *g < 30) {
				t.Errorf("%s is given less than 30 s to end", p.name)
			}
			for _, c := range p.containers() {
				if !image.MatchString(c.Image) || strings.HasSuffix(c.Image, ":latest") {
					t.Errorf("%s has the image %s", p.name, c.Image)
				}
				if s := c.SecurityContext; s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem {
					t.Errorf("%s can write to its image", p.name)
				}
				if c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() || c.Resources.Limits.Memory().IsZero() {
					t.Errorf("%s asks for %+v", p.name, c.Resources)
				}
				for _, m := range c.VolumeMounts {
					if !volumes[m.Name] {
						t.Errorf("%s mounts %s, which the pod has not", p.name, m.Name)
					}
				}
				if text := fmt.Sprint(c.Command, c.Args, c.LivenessProbe, c.ReadinessProbe); regexp.MustCompile(`(?i)password|--pass| -a `).MatchString(text) {
					t.Errorf("%s has a password in its arguments", p.name)
				}
				if p.name != "redlock" && (len(c.VolumeMounts) != 1 || c.VolumeMounts[0].MountPath != "/etc/xdg/redlock" || c.Command[0] != "redlock") {
					t.Errorf("%s does not run redlock with its configuration: %q", p.name, c.Command)
				}
			}
		}
	})
}

// TestPrograms: that the lock is busy is no failure, and that the nodes are away restarts nothing.
func TestPrograms(t *testing.T) {
	each(t, func(t *testing.T, k *kit) {
		if k.nightly.Spec.ConcurrencyPolicy != "Forbid" {
			t.Errorf("concurrencyPolicy is %s", k.nightly.Spec.ConcurrencyPolicy)
		}
		job := k.nightly.Spec.JobTemplate.Spec
		command := job.Template.Spec.Containers[0].Command
		for _, want := range []string{"-n", "--quiet-busy", "--min-hold"} {
			if !slices.Contains(command, want) {
				t.Errorf("nightly: no %s in %q", want, command)
			}
		}
		if flag(command, "-E") != "0" {
			t.Errorf("nightly: a pod that finds the lock busy has failed: %q", command)
		}
		for _, rule := range job.PodFailurePolicy.Rules {
			if exit := rule.OnExitCodes; exit != nil && (*exit.ContainerName != job.Template.Spec.Containers[0].Name || slices.Contains(exit.Values, 69)) {
				t.Errorf("nightly: %+v", exit)
			}
		}
		if job.Template.Spec.RestartPolicy != corev1.RestartPolicyNever {
			t.Error("nightly: podFailurePolicy needs restartPolicy: Never")
		}
		c := k.scheduler.Spec.Template.Spec.Containers[0]
		if c.LivenessProbe != nil || c.StartupProbe != nil {
			t.Error("scheduler: a probe restarts it")
		}
		if got := c.ReadinessProbe.Exec.Command; !slices.Equal(got[:3], []string{"redlock", "doctor", "--quorum"}) {
			t.Errorf("scheduler: it is ready by %q", got)
		}
		if !slices.Contains(k.prepare.Spec.Template.Spec.InitContainers[0].Command, "prepare") || strings.Contains(fmt.Sprint(k.prepare.Spec.Template.Spec), "--fresh") {
			t.Error("the job does not prepare the nodes, or with --fresh")
		}
	})
}
