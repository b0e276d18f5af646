package repotest_test

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/quorumlock/redlock/internal/redistest"
	"github.com/redis/go-redis/v9"
)

// TestFirstTenMinutes runs the commands of the README from top to bottom, as a reader would, and compares
// their output with what the README shows. The log has the time of each step.
func TestFirstTenMinutes(t *testing.T) {
	redistest.Servers(t, 0) // skips the test if there is no redis-server
	_, section, _ := strings.Cut(readFile(t, "README.md"), "\n## The first ten minutes\n")
	section, _, _ = strings.Cut(section, "\n## ")
	for _, port := range []string{"7101", "7102", "7103"} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		free := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
		l.Close()
		section = strings.ReplaceAll(section, port, free)
		t.Cleanup(func() { // however the test ends
			c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + free, MaxRetries: -1, DialerRetries: 1})
			defer c.Close()
			c.ShutdownNoSave(t.Context())
		})
	}

	type step struct{ code, want string }
	var steps []step
	script := "set -eu\nexec 2>&1\n"
	for _, m := range regexp.MustCompile("(?ms)^```(sh|console|go)\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		s := step{code: m[2]}
		switch m[1] {
		case "console":
			s.code, s.want, _ = strings.Cut(strings.TrimPrefix(m[2], "$ "), "\n")
		case "go":
			s.code = "cat >main.go <<'END'\n" + m[2] + "END"
		}
		steps = append(steps, s)
		script += fmt.Sprintf("%s\nprintf '\\n@@ %%s\\n' \"$(date +%%s.%%N)\"\n", s.code)
	}
	if len(steps) < 10 {
		t.Fatalf("the README has %d steps", len(steps))
	}
	temp := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	bash := exec.CommandContext(ctx, "bash", "-c", script)
	bash.Dir, bash.WaitDelay = temp, 10*time.Second
	bash.Env = append(os.Environ(), published(t, temp)...)
	begun := time.Now()
	out, err := bash.CombinedOutput()
	said := strings.Split(string(out), "\n@@ ")
	if err != nil || len(said) != len(steps)+1 {
		t.Fatalf("%v after %d of %d steps:\n%s", err, len(said)-1, len(steps), out)
	}
	last := float64(begun.UnixNano()) / 1e9
	for i, s := range steps {
		at, rest, _ := strings.Cut(said[i+1], "\n")
		now, err := strconv.ParseFloat(at, 64)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%5.1fs  %s", now-last, strings.SplitN(s.code, "\n", 2)[0])
		if s.want != "" && shape(said[i]) != shape(s.want) {
			t.Errorf("%s\nsays\n%s\nand not\n%s", s.code, said[i], s.want)
		}
		last, said[i+1] = now, rest
	}
	t.Logf("%5.1fs  in all", last-float64(begun.UnixNano())/1e9)
}

// shape removes from a text what differs each time.
func shape(text string) string {
	text = regexp.MustCompile(`[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`).ReplaceAllString(text, "TOKEN")
	text = regexp.MustCompile(`[0-9][0-9.]*(ms|s)?`).ReplaceAllString(text, "N")
	return strings.Join(strings.Fields(text), " ")
}

// published returns an environment in which this module, as it is in the tree, is published as its latest
// version, and its dependencies come from the local cache. Nothing of it gets into the caches of the user
// that runs the test.
func published(t *testing.T, temp string) []string {
	t.Helper()
	const module, version = "github.com/quorumlock/redlock", "v0.1.0"
	dir := filepath.Join(temp, "proxy", module, "@v")
	write := func(name, text string) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	write("list", version+"\n")
	write(version+".info", `{"Version":"`+version+`"}`)
	write(version+".mod", readFile(t, "go.mod"))
	file, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	z := zip.NewWriter(file)
	err = filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != ".":
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil || d.Name() == ".git" {
				return fs.SkipDir // a module of its own
			}
			return nil
		case !d.Type().IsRegular():
			return nil
		}
		w, err := z.Create(module + "@" + version + "/" + filepath.ToSlash(path))
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, readFile(t, path))
		return err
	})
	if err := errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	cache, err := exec.CommandContext(t.Context(), "go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	return []string{
		"GOPROXY=file://" + filepath.Join(temp, "proxy") + ",file://" + filepath.Join(strings.TrimSpace(string(cache)), "cache", "download"),
		"GOPATH=" + filepath.Join(temp, "go"), "GOMODCACHE=" + filepath.Join(temp, "mod"), "GOBIN=",
		"GOFLAGS=-modcacherw -trimpath", "GOSUMDB=off", "GONOSUMDB=", "GOPRIVATE=", "GOWORK=off",
	}
}
