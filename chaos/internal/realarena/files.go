package realarena

import (
	"cmp"
	"context"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock/chaos/history"
	"github.com/quorumlock/redlock/chaos/internal/client"
	"github.com/quorumlock/redlock/internal/testbed/redisproc"
)

// dataDir is the directory of a server's append-only file, in that of the server.
const dataDir = "appendonlydir"

// file is the append-only file that a server writes to, by the server's directory.
func file(dir string) (string, error) {
	all, err := filepath.Glob(filepath.Join(dir, dataDir, "*.incr.aof"))
	if len(all) == 0 {
		return "", cmp.Or(err, fs.ErrNotExist)
	}
	return slices.MaxFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) }), nil
}

// A diary has how large an append-only file was, and when. The file only grows: what it was is its beginning.
type diary struct {
	dir    string
	stop   context.CancelFunc // nil: it is not kept
	writes sync.WaitGroup

	mu    sync.Mutex
	pages []page // in order
}

const pagesEvery = 10 * time.Millisecond

type page struct {
	at   time.Time
	size int64
}

// keep looks at the file again and again until end.
func (d *diary) keep(dir string) {
	var ctx context.Context
	ctx, d.stop = context.WithCancel(context.Background())
	d.dir = dir
	d.writes.Go(func() {
		for ctx.Err() == nil {
			d.note()
			client.Wait(ctx, pagesEvery)
		}
	})
}

func (d *diary) end() {
	if d.stop != nil {
		d.stop()
		d.writes.Wait()
	}
}

func (d *diary) note() {
	name, err := file(d.dir)
	if err != nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if about, err := os.Stat(name); err == nil {
		d.pages = slices.DeleteFunc(d.pages, func(p page) bool { return p.size > about.Size() }) // it was cut
		if n := len(d.pages); n == 0 || d.pages[n-1].size < about.Size() {
			d.pages = append(d.pages, page{time.Now(), about.Size()})
		}
	}
}

// at is how large the file was then: 0 if it was not there, or was another one.
func (d *diary) at(then time.Time) (size int64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, p := range d.pages {
		if p.at.After(then) {
			break
		}
		size = p.size
	}
	return size
}

// damage makes the file of a server, which is down, what it is after a fault. Before is how large an earlier one was.
func damage(dir string, f history.Fault, before int64) error {
	name, err := file(dir)
	if err != nil {
		return err
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(uint64(f.Times), uint64(f.Node)))
	switch f.Kind {
	case history.CutFile:
		from := 0
		if rng.IntN(2) == 0 {
			from = max(0, len(data)-1000)
		}
		data = data[:from+rng.IntN(len(data)-from+1)]
	case history.FlipFile:
		for range 1 + rng.IntN(8) {
			if len(data) > 0 {
				data[rng.IntN(len(data))] ^= 1 << rng.IntN(8)
			}
		}
	default: // it is an earlier one
		data = data[:min(int64(len(data)), before)]
	}
	return os.WriteFile(name, data, 0o644)
}

// copyFiles puts a copy of another server's files in the place of a server's own. The other one may be writing them.
func copyFiles(dir, from string) (err error) {
	to := filepath.Join(dir, dataDir)
	for range 10 { // the other one may be about to be started without its files
		if err = os.RemoveAll(to); err == nil {
			err = os.CopyFS(to, os.DirFS(filepath.Join(from, dataDir)))
		}
		if err == nil {
			return nil
		}
		time.Sleep(pagesEvery)
	}
	return err
}

// startSomehow starts a server that may refuse its file, as an operator would: with what a tool saves of it, or without.
func startSomehow(s *redisproc.Server) error {
	if s.Restart() == nil {
		return nil
	}
	if tool, err := exec.LookPath("redis-check-aof"); err == nil {
		mend := exec.Command(tool, "--fix", filepath.Join(s.Dir(), dataDir, "appendonly.aof.manifest"))
		mend.Stdin = strings.NewReader("y\n")
		if mend.Run() == nil && s.Restart() == nil {
			return nil
		}
	}
	return s.Forget()
}

// fill begins or ends a full disk.
func fill(s *redisproc.Server, begin bool) error {
	if !begin {
		return s.LimitFiles(-1)
	}
	name, err := file(s.Dir())
	if err != nil {
		return err
	}
	about, err := os.Stat(name)
	if err != nil {
		return err
	}
	return s.LimitFiles(about.Size())
}
