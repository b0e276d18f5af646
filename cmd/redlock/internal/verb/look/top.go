package look

import (
	"context"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/quorumlock/redlock"
	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/cmd/redlock/internal/reach"
	"github.com/quorumlock/redlock/cmd/redlock/internal/term"
)

// topConfig has the flags of redlock top.
type topConfig struct {
	listFlags
	http  string // the address at which to serve the page; "": do not
	token string
}

// parseTop reads the arguments of redlock top.
func parseTop(args []string) (*topConfig, error) {
	cfg := &topConfig{listFlags: newListFlags()}
	f := flags.New("top")
	cfg.add(f)
	f.Value("http", "", func(value string) error {
		cfg.http = value
		return nil
	})
	f.Text("token", "leave it out, or give one that nobody can guess", &cfg.token)
	if err := cfg.parse(f, args); err != nil {
		return nil, err
	}
	switch {
	case f.Changed("http"):
		return cfg, checkHTTP(cfg.http, cfg.token)
	case cfg.token != "":
		return nil, exit.Fail(exit.Usage, "add --http 127.0.0.1:8080, or leave it out", "--token is for --http")
	}
	return cfg, nil
}

// Top is redlock top: it shows the locks of a set as they change, on a screen, as lines or as a page.
func Top(c *console.Console, _ string, args []string) (code int, err error) {
	cfg, err := parseTop(args)
	if err != nil {
		return 0, err
	}
	servers, err := reach.Real(c, &cfg.Flags, "ask")
	if err != nil {
		return 0, err
	}
	in, out := screenFiles(c)
	if cfg.http != "" {
		in, out = nil, nil
	}
	notes := newNotes()
	if out != nil { // a message on stderr would be written across the screen
		defer c.Divert(notes)()
	}
	return reach.Look(c, &cfg.Flags, servers, func(ctx context.Context, locker *redlock.Locker) (int, error) {
		looks := newLooks(locker, servers, &cfg.listFlags)
		defer looks.close()
		switch {
		case cfg.http != "":
			return reach.Looked(ctx, topPage(ctx, c, looks, cfg))
		case out == nil:
			return reach.Looked(ctx, topLines(ctx, c, looks, cfg.every))
		}
		live := &liveScreen{
			in: in, out: out, order: cfg.sort, every: cfg.every, notes: notes.changed,
			look: looks.picture, inspect: locker.Inspect,
		}
		return reach.Looked(ctx, live.run(ctx))
	})
}

// screenFiles returns the keyboard and the screen; nil and nil if there is no terminal that can be drawn on.
func screenFiles(c *console.Console) (in, out *os.File) {
	in, isIn := c.Stdin.(*os.File)
	out, isOut := c.ForPrograms().(*os.File)
	if kind, ok := console.Lookup(c.Env, "TERM"); !isIn || !isOut || !ok || kind == "" || kind == "dumb" || term.Width(in) == 0 || term.Width(out) == 0 {
		return nil, nil
	}
	return in, out
}

// notes is an io.Writer in place of stderr. The screen shows the latest line.
type notes struct {
	mu      sync.Mutex
	changed chan string // holds the latest line until the screen reads it
}

func newNotes() *notes { return &notes{changed: make(chan string, 1)} }

func (n *notes) Write(p []byte) (int, error) {
	lines := strings.Split(strings.TrimSpace(string(p)), "\n")
	n.mu.Lock()
	defer n.mu.Unlock()
	replace(n.changed, time.Now().Format(time.TimeOnly)+" "+strings.TrimPrefix(lines[len(lines)-1], "redlock: "))
	return len(p), nil
}

// replace puts v into a channel of capacity one, and drops a value that was not read. Only one goroutine at a time
// may call it for a channel.
func replace[T any](c chan T, v T) {
	select {
	case <-c:
	default:
	}
	c <- v
}
