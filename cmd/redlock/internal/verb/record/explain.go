package record

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/quorumlock/redlock/cmd/redlock/internal/console"
	"github.com/quorumlock/redlock/cmd/redlock/internal/exit"
	"github.com/quorumlock/redlock/cmd/redlock/internal/flags"
	"github.com/quorumlock/redlock/internal/recording"
)

// explainConfig has the flags of redlock explain.
type explainConfig struct {
	key    string
	record string
	at     string // "": the whole record
	html   string // a file; "": none
	json   bool
}

// recordVariable is the environment variable for --record.
const recordVariable = "REDLOCK_RECORD"

// parseExplain reads the arguments of redlock explain.
func parseExplain(args, env []string) (*explainConfig, error) {
	cfg := new(explainConfig)
	f := flags.New("explain")
	f.SetInterspersed(true)
	for name, to := range map[string]*string{"record": &cfg.record, "at": &cfg.at, "html": &cfg.html} {
		f.Text(name, "see redlock help explain", to)
	}
	f.Toggle("json", "", &cfg.json)
	rest, err := f.Parse(args)
	if value, ok := console.Lookup(env, recordVariable); ok && cfg.record == "" {
		cfg.record = value
	}
	switch {
	case err != nil:
		return nil, err
	case len(rest) != 1 || rest[0] == "":
		return nil, exit.Fail(exit.Usage, "for example: redlock explain backup --record /var/log/redlock.record", "explain takes the name of one lock, and was given %q", rest)
	case cfg.record == "":
		return nil, exit.Fail(exit.Usage, "the file that redlock record writes: --record FILE, or "+recordVariable, "there is no record to explain from")
	}
	cfg.key = rest[0]
	return cfg, nil
}

// Explain is redlock explain: it says what happened to a lock.
func Explain(c *console.Console, _ string, args []string) (int, error) {
	cfg, err := parseExplain(args, c.Env)
	if err != nil {
		return 0, err
	}
	s, err := recording.Read(cfg.record, cfg.key)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return 0, exit.Fail(exit.Usage, "redlock record FILE writes one", "%v", err)
	case err != nil:
		return 0, exit.Fail(exit.Usage, "", "%v", err)
	}
	var at time.Time
	if cfg.at != "" {
		if at, err = parseMoment(cfg.at, s.To); err != nil {
			return 0, exit.Fail(exit.Usage, "write 2026-01-31 12:00:00.5, 12:00:00.5, 2026-01-31T12:00:00.5Z, or -5m for five minutes before the record's end", "--at %v", err)
		}
		if at = lastOf(at, s.To); at.Before(s.From) || at.After(s.To) {
			return 0, exit.Fail(exit.Usage, "", "--at %s is not in the record, which is from %s to %s", cfg.at, stamp(s.From), stamp(s.To))
		}
	}
	if cfg.html != "" {
		if err := drawStory(s, at, cfg.html); err != nil {
			return 0, exit.Fail(exit.CannotWrite, "", "%v", err)
		}
	}
	switch {
	case cfg.json:
		err = c.PrintJSON(storyReportOf(s, at))
	case at.IsZero():
		err = showStory(c.Stdout, s)
	default:
		err = showMoment(c.Stdout, s, at)
	}
	if err == nil && len(s.Unfenced) > 0 {
		pair := s.Unfenced[0]
		return 0, exit.Fail(exit.Found, "docs/safety.md says what fences promise", "the fences do not rise: %d at %s, and %d at %s", pair[0].Fence, stamp(pair[0].From), pair[1].Fence, stamp(pair[1].From))
	}
	return 0, err
}

// lastOf returns the last instant of a whole millisecond, the unit in which times are shown, so that what began
// within it is included; or the end of the record, if that is earlier.
func lastOf(at, end time.Time) time.Time {
	if last := at.Add(time.Millisecond - time.Microsecond); !at.Equal(at.Truncate(time.Millisecond)) {
		return at
	} else if at.After(end) || last.Before(end) {
		return last
	}
	return end
}

// parseMoment parses an instant in a record, in the forms that people write. A time without a day is the last one
// before the end.
func parseMoment(value string, end time.Time) (time.Time, error) {
	for _, form := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(form, value, time.Local); err == nil {
			return at, nil
		}
	}
	for _, form := range []string{"15:04:05.999999999", "15:04"} {
		clock, err := time.Parse(form, value)
		if err != nil {
			continue
		}
		local := end.Local()
		at := time.Date(local.Year(), local.Month(), local.Day(), clock.Hour(), clock.Minute(), clock.Second(), clock.Nanosecond(), time.Local)
		if at.After(end) {
			at = at.AddDate(0, 0, -1)
		}
		return at, nil
	}
	if ago, err := time.ParseDuration(value); err == nil && ago <= 0 {
		return end.Add(ago), nil
	}
	return time.Time{}, fmt.Errorf("%q is not a time", value)
}
