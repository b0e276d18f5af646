package repotest_test

import (
	"encoding/json"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/quorumlock/redlock"

// forbidden has packages that the library must not bring into a program that imports it, directly or
// indirectly.
var forbidden = []struct{ path, why string }{
	{"testing", "adds its flags to every program"},
	{"flag", "a library has no command line"},
	{"net/http", "a lock needs no web server, and its DefaultServeMux is the program's"},
	{"expvar", "publishes what nobody has asked for, by way of net/http"},
	{"os/exec", "a lock starts no process"},
	{"os/signal", "signals are the program's"},
	{"plugin", "turns off the linker's removal of dead code"},
	{"github.com/alicebob/miniredis", "is for tests, and for the command's own nodes"},
	{"github.com/yuin/gopher-lua", "comes with miniredis"},
	{module + "/internal/testbed", "is for tests and the harness, and starts processes"},
	{module + "/internal/integration", "is for tests"},
	{module + "/internal/listing", "walks all keys of the nodes, for the command"},
	{module + "/chaos", "is for tests"},
	{module + "/redlocktest", "is for tests"},
}

// forbiddenHere has packages that others may import, but not the root package.
var forbiddenHere = []struct{ path, why string }{
	{"log", "what to tell goes to Hooks; LogHooks takes a slog.Logger of the caller's"},
	{"os", "files and the environment are the program's"},
	{"math/rand", "its generator is shared with the program; there is math/rand/v2"},
	{"reflect", "nothing here is so general"},
	{"unsafe", "nothing here is so fast"},
}

// TestImports: go.mod, and the packages that come with a package, are part of its interface. To add one,
// change the table and give the reason.
func TestImports(t *testing.T) {
	for _, f := range forbidden {
		for path := range below(t, module) {
			if path == f.path || strings.HasPrefix(path, f.path+"/") {
				t.Errorf("%s comes in with the root package: %s", path, f.why)
			}
		}
	}
	for _, f := range forbiddenHere {
		if slices.Contains(imports(t)[module], f.path) {
			t.Errorf("the root package imports %s: %s", f.path, f.why)
		}
	}
	// The command has package testing in it, with chaos: virtual time needs a testing.T for
	// testing/synctest. The flags that it adds have no effect where package flag is not used.
	// It has net/http for redlock top --http, and for nothing else.
	web := []string{module + "/cmd/redlock/internal/page", module + "/fence"}
	for path, all := range imports(t) {
		if strings.HasPrefix(path, module) && !slices.Contains(web, path) && slices.Contains(all, "net/http") {
			t.Errorf("%s imports net/http, which is for the page of redlock top and for resources behind HTTP", path)
		}
	}
	// A resource that checks fences has no locks. And the library has no database.
	for path := range below(t, module+"/fence") {
		if path != module+"/fence" && strings.HasPrefix(path, module) {
			t.Errorf("%s comes in with package fence, which a resource imports without the lock client", path)
		}
	}
	if below(t, module)[module+"/fence"] {
		t.Error("the root package imports package fence, and database/sql and net/http with it")
	}
}

// layers lists, for each package of the library, the packages of this module that it may import. A package
// without a line may import none.
var layers = map[string]string{
	"":                       "aside dial facts lane nodeurl printable redisnode renew replace script set sim systime vote waitlist wire",
	"internal/dial":          "facts resp",
	"internal/facts":         "sockerr",
	"internal/waitlist":      "lane script set sim wire",
	"internal/redisnode":     "facts lane resp script wire",
	"internal/set":           "lane sim vote wire",
	"internal/vote":          "lane printable wire",
	"internal/lane":          "printable sim wire",
	"internal/renew":         "sim",
	"internal/replace":       "lane sim",
	"internal/script":        "wire",
	"internal/wire":          "facts printable",
	"internal/testbed/model": "lane replace script sim testbed/reading wire",
}

// TestLayers: imports go downwards only.
func TestLayers(t *testing.T) {
	library := below(t, module)
	maps.Copy(library, below(t, module+"/internal/testbed/model"))
	for from := range library {
		if !strings.HasPrefix(from, module) {
			continue
		}
		dir := strings.TrimPrefix(strings.TrimPrefix(from, module), "/")
		for _, path := range imports(t)[from] {
			if to, ours := strings.CutPrefix(path, module+"/internal/"); ours && !slices.Contains(strings.Fields(layers[dir]), to) {
				t.Errorf("%q imports %s: only %q are below it", dir, path, layers[dir])
			}
		}
	}
}

// TestVerbs: only the command imports a family of its verbs, so no family imports another one. What several families
// need is in a package beside them.
func TestVerbs(t *testing.T) {
	const verbs = module + "/cmd/redlock/internal/verb/"
	families := 0
	for from, all := range imports(t) {
		if strings.HasPrefix(from, verbs) {
			families++
		}
		for _, to := range all {
			if strings.HasPrefix(to, verbs) && from != module+"/cmd/redlock" {
				t.Errorf("%s imports %s: only cmd/redlock imports a family of verbs", from, to)
			}
		}
	}
	if families < 6 {
		t.Errorf("the command has only %d families of verbs", families)
	}
}

// below has a package, and all that comes in with it.
func below(t *testing.T, path string) map[string]bool {
	t.Helper()
	all := make(map[string]bool)
	for add := []string{path}; len(add) > 0; {
		next := add[0]
		if add = add[1:]; !all[next] {
			all[next] = true
			add = append(add, imports(t)[next]...)
		}
	}
	return all
}

var imported map[string][]string

// imports has what each package of the library and of the command imports, and what those import. The go
// command is asked once.
func imports(t *testing.T) map[string][]string {
	t.Helper()
	if imported == nil {
		list := goCommand(t, "list", "-deps", "-f", `{{.ImportPath}} {{join .Imports " "}}`, ".", "./internal/testbed/model", "./cmd/redlock", "./fence")
		imported = make(map[string][]string)
		for line := range strings.Lines(list) {
			all := strings.Fields(line)
			imported[all[0]] = all[1:]
		}
	}
	return imported
}

// TestRequirements: these, and no more.
func TestRequirements(t *testing.T) {
	var mod struct {
		Require []struct {
			Path     string
			Indirect bool
		}
		Replace, Exclude []any
	}
	out := goCommand(t, "mod", "edit", "-json")
	if err := json.Unmarshal([]byte(out), &mod); err != nil {
		t.Fatal(err)
	}
	var direct []string
	for _, r := range mod.Require {
		if !r.Indirect {
			direct = append(direct, r.Path)
		}
	}
	slices.Sort(direct)
	if want := []string{
		"github.com/alicebob/miniredis/v2",   // embedded nodes, in tests and in the command
		"github.com/google/uuid",             // tokens
		"github.com/hashicorp/go-multierror", // the errors of several nodes
		"github.com/redis/go-redis/v9",
		"github.com/rogpeppe/go-internal", // testscript, for the command's tests
		"github.com/spf13/pflag",          // the command's flags
		"golang.org/x/sys",                // terminals, in the command; go-redis and miniredis bring the same version
	}; !slices.Equal(direct, want) {
		t.Errorf("go.mod requires %q, want %q", direct, want)
	}
	if len(mod.Replace)+len(mod.Exclude) > 0 {
		t.Errorf("go.mod has replace %v and exclude %v, which have no effect for modules that import this one", mod.Replace, mod.Exclude)
	}
}

func goCommand(t *testing.T, args ...string) string {
	t.Helper()
	run := exec.CommandContext(t.Context(), "go", args...)
	out, err := run.Output()
	if err != nil {
		t.Fatalf("%v: %v", run.Args, err)
	}
	return string(out)
}
