//go:build unix

package kubernetes

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/quorumlock/redlock/internal/testbed/port"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// patience is how long a step may take that takes a moment on an idle machine.
const patience = 30 * time.Second

// bin stands for /usr/local/bin of the images.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "redlock-kit"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	_ = os.RemoveAll(bin)
	os.Exit(code)
}

// image builds what the Dockerfiles put into bin, by their own lines.
var image = sync.OnceValue(func() error {
	dockerfile, err := os.ReadFile("Dockerfile")
	if err != nil {
		return err
	}
	run := regexp.MustCompile(`(?m)^RUN (.* go build .*) -o (\S+) (\S+)$`).FindStringSubmatch(string(dockerfile))
	if run == nil {
		return errors.New("the Dockerfile does not build the command")
	}
	if !strings.Contains(string(dockerfile), "\nCOPY --from=build "+run[2]+" /usr/local/bin/redlock\n") {
		return errors.New("the Dockerfile does not copy " + run[2])
	}
	build := exec.Command("sh", "-c", run[1]+` -o "$0" `+run[3], filepath.Join(bin, "redlock"))
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", run[0], err, out)
	}
	dockerfile, err = os.ReadFile("programs/Dockerfile")
	if err != nil {
		return err
	}
	programs := regexp.MustCompile(`(?m)^COPY --chmod=0755 (.*) /usr/local/bin/$`).FindStringSubmatch(string(dockerfile))
	if programs == nil {
		return errors.New("programs/Dockerfile copies no programs")
	}
	for _, name := range strings.Fields(programs[1]) {
		text, err := os.ReadFile(filepath.Join("programs", name))
		if err == nil {
			err = os.WriteFile(filepath.Join(bin, name), text, 0o755)
		}
		if err != nil {
			return err
		}
	}
	return nil
})

func buildImage(t *testing.T) {
	t.Helper()
	if err := image(); err != nil {
		t.Fatal(err)
	}
}

// TestDockerfile: the command is static, so that it runs in an image with nothing else, and not as root.
func TestDockerfile(t *testing.T) {
	for _, file := range []string{"Dockerfile", "programs/Dockerfile"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		froms := regexp.MustCompile(`(?m)^FROM (\S+)`).FindAllStringSubmatch(string(text), -1)
		for _, from := range froms {
			if from[1] != "scratch" && !regexp.MustCompile(`^[a-z]+:[a-z0-9.-]+$`).MatchString(from[1]) {
				t.Errorf("%s: FROM %s has no tag, or has the host of a registry", file, from[1])
			}
		}
		last := string(text)[strings.LastIndex(string(text), "\nFROM "):]
		if !strings.Contains(last, "\nUSER 65532:65532\n") {
			t.Errorf("%s: the last stage has no numeric user that is not root, which runAsNonRoot needs:\n%s", file, last)
		}
	}
	need.Full(t)
	buildImage(t)
	f, err := elf.Open(filepath.Join(bin, "redlock"))
	if err != nil {
		if runtime.GOOS != "linux" {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("the command is not static")
		}
	}
}

// A cluster stands for one: real servers, with the very configuration and users of the kit, of which only ports,
// directories and the host's name are replaced; and the environment of the pods of its programs.
type cluster struct {
	*testing.T
	*kit
	nodes []*node
	env   []string // of redlock
}

// A node is a redis-server, and what the probes of its pod get.
type node struct {
	claim *port.Claim
	conf  string
	child *redisproc.Child
	env   []string
}

const password = "c0ffee"

func newCluster(t *testing.T, k *kit) *cluster {
	need.Servers(t, redisproc.Available)
	if _, err := exec.LookPath("redis-cli"); err != nil {
		need.Skip(t, need.WithServers, err)
	}
	buildImage(t)
	c := &cluster{T: t, kit: k}
	etc := filepath.Join(t.TempDir(), "redlock") // for /etc/xdg/redlock
	write := func(path, text string, mode os.FileMode) string {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret := func(key string) string {
		return strings.ReplaceAll(k.secret.StringData[key], k.secret.StringData["password"], password)
	}
	clients := k.clients.Data["redlock.conf"]
	for _, name := range k.names() {
		dir := t.TempDir()
		conf := k.redis.Data["redis.conf"]
		set := func(name, value string) {
			conf = regexp.MustCompile(`(?m)^`+name+` .*$`).ReplaceAllLiteralString(conf, name+" "+value)
		}
		set("dir", dir)
		set("bind", "127.0.0.1")
		set("aclfile", write(filepath.Join(dir, "users.acl"), secret("users.acl"), 0o600))
		n := &node{env: []string{"PATH=" + os.Getenv("PATH"), "REDISCLI_AUTH=" + secret("password")}}
		var err error
		n.claim, err = port.Find(func(claim *port.Claim, l net.Listener) error {
			_ = l.Close()
			n.claim = claim
			set("port", fmt.Sprint(claim.Number))
			n.conf = write(filepath.Join(dir, "redis.conf"), conf, 0o600)
			return c.start(n)
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.child.Kill(); n.claim.Close() })
		c.nodes = append(c.nodes, n)
		clients = strings.ReplaceAll(clients, name+"\n", "redis://"+n.claim.Addr+"\n")
	}
	write(filepath.Join(etc, "redlock.conf"), clients, 0o400)
	write(filepath.Join(etc, "password"), secret("password"), 0o400)
	c.env = []string{"PATH=" + bin + ":" + os.Getenv("PATH"), "XDG_CONFIG_DIRS=" + filepath.Dir(etc), "NIGHTLY_SECONDS=1"}
	return c
}

// start starts the server of a node, and waits until it is ready as its probe says.
func (c *cluster) start(n *node) error {
	server := exec.Command("redis-server", n.conf)
	log := filepath.Join(filepath.Dir(n.conf), "redis.log")
	out, err := os.OpenFile(log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer out.Close()
	server.Stdout, server.Stderr = out, out
	if n.child, err = redisproc.StartChild(server); err != nil {
		return err
	}
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		said, code := c.probe(n, c.set.Spec.Template.Spec.Containers[0].ReadinessProbe)
		if code == 0 {
			return nil
		}
		select {
		case <-n.child.Done():
		default:
			if time.Now().Before(end) {
				continue
			}
		}
		n.child.Kill()
		text, _ := os.ReadFile(log)
		if strings.Contains(string(text), "Address already in use") {
			return port.ErrTaken
		}
		return fmt.Errorf("the server is not ready: %s\n%s", said, text)
	}
}

// probe runs a probe of the servers' pods.
func (c *cluster) probe(n *node, p *corev1.Probe) (said string, code int) {
	command := slices.Insert(slices.Clone(p.Exec.Command), 1, "-p", fmt.Sprint(n.claim.Number))
	return c.exec(n.env, command, time.Duration(p.TimeoutSeconds)*time.Second)
}

// exec runs a command of a pod to its end, which must come within that time, as for the kubelet's probes.
func (c *cluster) exec(env, command []string, within time.Duration) (said string, code int) {
	c.Helper()
	p := c.begin(env, command)
	select {
	case <-p.child.Done():
	case <-time.After(within):
		p.child.Kill()
		c.Errorf("%q has not ended within %v: %s", command, within, p.said())
	}
	return p.said(), p.code()
}

// A process is a container of a program.
type process struct {
	cmd   *exec.Cmd
	child *redisproc.Child
	out   string // a file
}

func (c *cluster) begin(env, command []string) *process {
	c.Helper()
	out, err := os.CreateTemp(c.TempDir(), "out")
	if err != nil {
		c.Fatal(err)
	}
	defer out.Close()
	path := command[0]
	if _, err := os.Stat(filepath.Join(bin, path)); err == nil {
		path = filepath.Join(bin, path)
	}
	cmd := exec.Command(path, command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, out, out
	child, err := redisproc.StartChild(cmd)
	if err != nil {
		c.Fatal(err)
	}
	c.Cleanup(child.Kill)
	return &process{cmd, child, out.Name()}
}

func (p *process) said() string {
	text, _ := os.ReadFile(p.out)
	return string(text)
}

// code is the exit status of a process that has ended.
func (p *process) code() int {
	_ = p.child.Ended()
	return p.cmd.ProcessState.ExitCode()
}

// until waits until something is true.
func (c *cluster) until(what string, is func() bool) {
	c.Helper()
	for end := time.Now().Add(patience); !is(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			c.Fatalf("after %v: not %s", patience, what)
		}
	}
}

// want runs a command of a pod, and compares its exit status.
func (c *cluster) want(code int, command []string) (said string) {
	c.Helper()
	said, got := c.exec(c.env, command, 2*patience)
	if got != code {
		c.Errorf("%q: exit status %d, want %d\n%s", command, got, code, said)
	}
	return said
}

// keeps checks that each node keeps the description of the set that the job has made.
func (c *cluster) keeps() {
	c.Helper()
	var set struct {
		MaxTTL  int64 `json:"max_ttl_ms"`
		Members []struct {
			Node  string `json:"node"`
			Keeps int64  `json:"keeps"`
		} `json:"members"`
	}
	out := c.want(0, []string{"redlock", "members", "--json"})
	if err := json.Unmarshal([]byte(out), &set); err != nil {
		c.Fatalf("%v\n%s", err, out)
	}
	want := flag(c.prepare.Spec.Template.Spec.InitContainers[0].Command, "--max-ttl")
	if longest := time.Duration(set.MaxTTL) * time.Millisecond; longest.String() != want {
		c.Errorf("the longest TTL is %v, and the job has %s", longest, want)
	}
	if len(set.Members) != len(c.nodes) {
		c.Errorf("%d members of %d:\n%s", len(set.Members), len(c.nodes), out)
	}
	for _, m := range set.Members {
		if m.Keeps != 1 {
			c.Errorf("%s keeps epoch %d", m.Node, m.Keeps)
		}
	}
}

// TestRun runs what the pods run, on servers with the configuration of the kit: the command lines and the probes
// are those of the manifests.
func TestRun(t *testing.T) {
	all, err := kits()
	if err != nil {
		t.Fatal(err)
	}
	for name, k := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster(t, k)
			ready := k.scheduler.Spec.Template.Spec.Containers[0].ReadinessProbe.Exec.Command
			c.probes()
			c.want(1, ready) // new nodes have no vote
			c.job()
			c.want(0, ready)
			c.cronJob()
			c.deployment(ready)
		})
	}
}

// probes: those of the servers tell a server that hangs or refuses the user from one that answers.
func (c *cluster) probes() {
	pod := c.set.Spec.Template.Spec.Containers[0]
	for what, want := range map[string]struct {
		env         []string
		live, ready int
	}{
		"the password":       {c.nodes[0].env, 0, 0},
		"another password":   {[]string{"REDISCLI_AUTH=wrong"}, 0, 1},
		"no password at all": {nil, 0, 1},
	} {
		n := *c.nodes[0]
		n.env = append([]string{"PATH=" + os.Getenv("PATH")}, want.env...)
		if said, code := c.probe(&n, pod.LivenessProbe); code != want.live {
			c.Errorf("with %s: the liveness probe has exit status %d: %s", what, code, said)
		}
		if said, code := c.probe(&n, pod.ReadinessProbe); code != want.ready {
			c.Errorf("with %s: the readiness probe has exit status %d: %s", what, code, said)
		}
	}
	gone := *c.nodes[0]
	gone.claim = &port.Claim{Number: 1}
	if _, code := c.probe(&gone, pod.LivenessProbe); code == 0 {
		c.Error("the liveness probe passes without a server")
	}
	if said, code := c.exec(c.nodes[0].env[:1], []string{"redis-cli", "-e", "-p", fmt.Sprint(c.nodes[0].claim.Number), "ping"}, patience); code == 0 {
		c.Errorf("the server lets everybody in: %s", said)
	}
}

// job: the nodes vote when it has ended, the set has the longest TTL that it names, and it may run again.
func (c *cluster) job() {
	spec := c.prepare.Spec.Template.Spec
	begun := time.Now()
	for _, p := range slices.Concat(spec.InitContainers, spec.Containers) {
		c.want(0, p.Command)
	}
	if took := time.Since(begun); took < c.quarantine(c.T) {
		c.Errorf("new nodes vote after %v", took)
	}
	begun = time.Now()
	for _, p := range slices.Concat(spec.InitContainers, spec.Containers) {
		c.want(0, p.Command)
	}
	if took := time.Since(begun); took > 5*time.Second {
		c.Errorf("the second time the job takes %v", took)
	}
	c.keeps()
}

// cronJob: of two pods at once one does the job, and none has failed.
func (c *cluster) cronJob() {
	spec := c.nightly.Spec.JobTemplate.Spec.Template.Spec
	c.want(0, spec.InitContainers[0].Command)
	command := slices.Clone(spec.Containers[0].Command)
	command[slices.Index(command, "--min-hold")+1] = "3s" // a minute, in the manifest
	pods := []*process{c.begin(c.env, command), c.begin(c.env, command)}
	done := 0
	for _, p := range pods {
		if code := p.code(); code != 0 {
			c.Errorf("%q: exit status %d\n%s", command, code, p.said())
		}
		switch p.said() {
		case "":
		default:
			done++
			if !strings.HasSuffix(p.said(), "nightly: done\n") {
				c.Errorf("%q prints\n%s", command, p.said())
			}
		}
	}
	if done != 1 {
		c.Errorf("%d of two pods have done the job", done)
	}
	// A command that fails has failed, and one that is not there is among what ends the job. Under another name: the nodes
	// keep the lock for --min-hold.
	i := slices.Index(command, "--")
	command = slices.Clone(command[:i+1])
	command[slices.Index(command, "nightly")] = "other"
	command[slices.Index(command, "--min-hold")+1] = "0s"
	c.want(3, append(slices.Clone(command), "sh", "-c", "exit 3"))
	c.want(127, append(slices.Clone(command), "no-such-program"))
	if rules := c.nightly.Spec.JobTemplate.Spec.PodFailurePolicy.Rules; !slices.ContainsFunc(rules, func(r batchv1.PodFailurePolicyRule) bool {
		return r.OnExitCodes != nil && slices.Contains(r.OnExitCodes.Values, 127)
	}) {
		c.Error("a command that is not there is tried again")
	}
}

// deployment: one pod is elected, a node that is restarted changes nothing for it and votes again within the
// pause, and while too few nodes answer no pod ends, and none is ready.
func (c *cluster) deployment(ready []string) {
	command := c.scheduler.Spec.Template.Spec.Containers[0].Command
	const leads = "scheduler: leads,"
	first := c.begin(c.env, command)
	c.until("elected", func() bool { return strings.Contains(first.said(), leads) })
	second := c.begin(c.env, command)

	// A rolling update restarts one node, and waits.
	last := c.nodes[len(c.nodes)-1]
	last.child.Kill()
	c.want(0, ready) // the others are enough
	if err := c.start(last); err != nil {
		c.Fatal(err)
	}
	log, err := os.ReadFile(filepath.Join(filepath.Dir(last.conf), "redis.log"))
	if err != nil {
		c.Fatal(err)
	}
	if bytes.Contains(log, []byte("NOPERM")) {
		c.Errorf("the server has not loaded all that it had written:\n%s", log)
	}
	c.keeps()
	time.Sleep(time.Duration(c.set.Spec.Template.Spec.Containers[0].ReadinessProbe.InitialDelaySeconds) * time.Second)
	// Had its quarantine begun only now, this would not be enough.
	c.want(0, []string{"redlock", "prepare", "--timeout", "5s"})
	if strings.Contains(first.said(), "scheduler: ends") || strings.Contains(second.said(), leads) {
		c.Errorf("the pods, while a node was restarted:\n%s\nand\n%s", first.said(), second.said())
	}

	// The leader's pod is deleted.
	if err := syscall.Kill(first.child.Pid(), syscall.SIGTERM); err != nil {
		c.Fatal(err)
	}
	select {
	case <-first.child.Done():
	case <-time.After(time.Duration(*c.scheduler.Spec.Template.Spec.TerminationGracePeriodSeconds) * time.Second):
		c.Errorf("the leader has not ended:\n%s", first.said())
	}
	if code := first.code(); code != 0 || !strings.Contains(first.said(), "scheduler: ends\n") {
		c.Errorf("the leader ended with %d:\n%s", code, first.said())
	}
	c.until("the other one elected", func() bool { return strings.Contains(second.said(), leads) })

	// Too few nodes answer.
	for _, n := range c.nodes[:len(c.nodes)/2+1] {
		n.child.Kill()
	}
	c.want(1, ready)
	c.until("ended by redlock, because the lock was lost", func() bool { return strings.Contains(second.said(), "scheduler: ends\n") })
	select {
	case <-second.child.Done():
		c.Errorf("a pod ends because the nodes are away:\n%s", second.said())
	case <-time.After(2 * time.Second):
	}
	if _, code := c.exec(c.env, c.nightly.Spec.JobTemplate.Spec.Template.Spec.Containers[0].Command, patience); code != 69 {
		c.Errorf("nightly without nodes: exit status %d, want 69", code)
	}
}
