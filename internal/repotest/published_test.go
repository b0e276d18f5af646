package repotest_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/internal/testbed/redistest"
	"github.com/quorumlock/redlock/internal/testbed/redistest/need"
)

// TestPublished: what the tree would publish can be used by somebody who has no clone. The library, each adapter and
// the command are fetched from a module proxy, into modules without a replace. The program of the README runs. In a
// long run the program of adapters/otel/README.md is built and the examples of the adapters run: compiling what they
// import takes minutes.
func TestPublished(t *testing.T) {
	servers := redistest.Servers(t, 3) // skips the test if there is no redis-server
	env := published(t)
	version := treeVersion(t)

	t.Run("library", func(t *testing.T) {
		code := programOf(t, "README.md")
		for i, s := range servers {
			code = strings.ReplaceAll(code, fmt.Sprintf("redis://10.0.0.%d", i+1), s.URL())
		}
		dir := dependant(t, env, module, version, code)
		said := runIn(t, dir, env, "go", "run", ".")
		if !regexp.MustCompile(`reporting, with the fencing token \d+\n$`).MatchString(said) {
			t.Errorf("the program of the README says %q", said)
		}
	})

	adapters := publishedModules(t)[1:]
	if len(adapters) < 4 {
		t.Errorf(".ci/modules has the adapters %q", adapters)
	}
	for _, adapter := range adapters {
		t.Run(adapter, func(t *testing.T) {
			if why := newerGo(adapter); why != "" {
				need.Skip(t, "of a newer Go", why)
			}
			path := module + "/" + adapter
			code := "package reader\n\nimport _ \"" + path + "\"\n"
			if readme := filepath.Join(adapter, "README.md"); slices.Contains(documents(t), readme) {
				code = programOf(t, readme)
			}
			dir := dependant(t, env, path, version, code)
			if !need.Sized(false, false, true) {
				return
			}
			runIn(t, dir, env, "go", "vet", "./...")
			said := runIn(t, dir, env, "go", "test", "-v", "-run", "^Example", path)
			if !strings.Contains(said, "--- PASS: Example") {
				t.Errorf("no example of %s ran:\n%s", path, said)
			}
		})
	}

	t.Run("command", func(t *testing.T) {
		bin := t.TempDir()
		runIn(t, bin, append(env, "GOBIN="+bin), "go", "install", module+"/cmd/redlock@latest")
		if said := runIn(t, bin, env, "./redlock", "version"); !strings.HasPrefix(said, "redlock "+version+" ") {
			t.Errorf("redlock version says %q, want %s", said, version)
		}
	})
}

// dependant makes a module that has this code, and requires the module path as it is published. It returns the
// directory.
func dependant(t *testing.T, env []string, path, version, code string) string {
	t.Helper()
	dir := t.TempDir()
	runIn(t, dir, env, "go", "mod", "init", "example.com/reader")
	runIn(t, dir, env, "go", "get", path+"@latest")
	if err := os.WriteFile(filepath.Join(dir, "main.go"), []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	runIn(t, dir, env, "go", "mod", "tidy")
	used := strings.Fields(runIn(t, dir, env, "go", "list", "-deps", "-f", "{{with .Module}}{{.Path}}@{{.Version}}{{with .Replace}} is replaced{{end}}{{end}}", "."))
	for _, want := range []string{module, path} {
		if !slices.Contains(used, want+"@"+version) {
			t.Errorf("a program with %s is built with %q, and not with %s@%s", path, used, want, version)
		}
	}
	return dir
}

// runIn runs a command in a directory, and returns what it prints.
func runIn(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), name, args...)
	run.Dir, run.Env = dir, append(os.Environ(), env...)
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %v\n%s", run.Args, err, out)
	}
	return string(out)
}

// programOf returns the first whole program of a document.
func programOf(t *testing.T, doc string) string {
	t.Helper()
	for _, code := range blocks(readFile(t, doc), "go") {
		if strings.HasPrefix(code, "package main\n") {
			return code
		}
	}
	t.Fatalf("%s has no program", doc)
	return ""
}

// publishedModules returns the directories of the modules that are published, the root's first.
func publishedModules(t *testing.T) []string {
	t.Helper()
	return strings.Fields(runIn(t, ".", nil, ".ci/modules"))
}

// newerGo says which Go the module in this directory needs, if it is newer than the one that runs.
func newerGo(dir string) string {
	list := exec.Command("go", "list", "-m")
	list.Dir = dir
	out, err := list.CombinedOutput()
	if _, version, found := strings.Cut(string(out), "requires go >= "); err != nil && found {
		version, _, _ = strings.Cut(version, " ")
		return dir + " needs Go " + version
	}
	return ""
}

// treeVersion returns the version in which the modules of the tree require each other.
func treeVersion(t *testing.T) string {
	t.Helper()
	return strings.TrimSpace(runIn(t, ".", nil, ".ci/version"))
}

// published returns an environment in which the modules of the tree are published, each as its latest version.
// The go command itself takes them from a repository with the tags of a release, as a module proxy does; its cache is
// then the proxy. Their dependencies come from the cache of the user, or else from where the user has them from.
// Nothing of it gets into the module cache of the user.
func published(t *testing.T) []string {
	t.Helper()
	temp := t.TempDir()
	var user map[string]string
	if err := json.Unmarshal([]byte(goCommand(t, "env", "-json", "GOMODCACHE", "GOCACHE", "GOPROXY")), &user); err != nil {
		t.Fatal(err)
	}
	repo, proxy := filepath.Join(temp, "repo"), filepath.Join(temp, "proxy")
	git := func(args ...string) {
		runIn(t, ".", nil, "git", append([]string{"--git-dir=" + repo, "--work-tree=.", "-c", "user.name=test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false"}, args...)...)
	}
	git("init", "-q")
	git("add", "--all")
	git("commit", "-q", "--no-verify", "--message=the tree")
	version := treeVersion(t)
	download := []string{"mod", "download"}
	for _, dir := range publishedModules(t) {
		if newerGo(dir) != "" {
			continue
		}
		git("tag", filepath.ToSlash(filepath.Join(dir, version)))
		download = append(download, filepath.ToSlash(filepath.Join(module, dir))+"@"+version)
	}
	env := map[string]string{
		"GOCACHE": user["GOCACHE"], "GOBIN": "", "GOENV": "off", "GOFLAGS": "-modcacherw -trimpath",
		"GOSUMDB": "off", "GONOSUMDB": "", "GOPRIVATE": "", "GONOPROXY": "", "GOWORK": "off", "GOPROXY": "direct", "GOMODCACHE": proxy,
		"GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "url.file://" + repo + ".insteadOf", "GIT_CONFIG_VALUE_0": "https://" + module,
	}
	runIn(t, temp, variables(env), "go", download...)
	env["GOMODCACHE"] = filepath.Join(temp, "mod")
	env["GOPROXY"] = "file://" + filepath.Join(proxy, "cache", "download") + ",file://" + filepath.Join(user["GOMODCACHE"], "cache", "download") + "," + user["GOPROXY"]
	return variables(env)
}

func variables(env map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(env)) {
		list = append(list, name+"="+env[name])
	}
	return list
}
