package realarena

import (
	"cmp"
	"context"
	"errors"
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
			client.Wait(ctx, tick)
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

// damage makes the files of a server, which is down, what they are after a fault.
func (n *node) damage(f history.Fault) error {
	switch f.Kind {
	case history.OtherFile:
		return n.copyOther(f.Times)
	case history.CutFile, history.FlipFile, history.OldFile, history.PowerCut:
	default:
		return nil
	}
	name, err := file(n.server.Dir())
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
		n.flipped.Store(true)
	default:
		data = data[:min(int64(len(data)), n.diary.at(n.died.Add(-f.By)))]
	}
	return os.WriteFile(name, data, 0o644)
}

// copyOther puts a copy of another node's files in the place of a node's own. The other server may be writing them.
func (n *node) copyOther(which int) error {
	if len(n.others) == 0 {
		return errors.New("there is no other node")
	}
	other := n.others[which%len(n.others)]
	to := filepath.Join(n.server.Dir(), dataDir)
	var err error
	for range 10 { // the other server may be about to be started without its files
		if err = os.RemoveAll(to); err == nil {
			err = os.CopyFS(to, os.DirFS(filepath.Join(other.server.Dir(), dataDir)))
		}
		if err == nil {
			if other.flipped.Load() {
				n.flipped.Store(true)
			}
			return nil
		}
		time.Sleep(tick)
	}
	return err
}

// startSomehow starts a server that may refuse its file, as an operator would: with what a tool saves of it, or without.
func (n *node) startSomehow() error {
	if n.server.Restart() == nil {
		return nil
	}
	if tool, err := exec.LookPath("redis-check-aof"); err == nil {
		mend := exec.Command(tool, "--fix", filepath.Join(n.server.Dir(), dataDir, "appendonly.aof.manifest"))
		mend.Stdin = strings.NewReader("y\n")
		if mend.Run() == nil && n.server.Restart() == nil {
			return nil
		}
	}
	return n.server.Forget()
}

// fill begins or ends a full disk.
func (n *node) fill(begin bool) error {
	if !begin {
		return n.server.LimitFiles(-1)
	}
	name, err := file(n.server.Dir())
	if err != nil {
		return err
	}
	about, err := os.Stat(name)
	if err != nil {
		return err
	}
	return n.server.LimitFiles(about.Size())
}
