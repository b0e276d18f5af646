package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// A File takes lines, and is never larger than a bound. When it is half full, it takes the place of the file
// with the name and ".1", and a new one begins.
type File struct {
	name string
	half int64
	full int64 // at which size the next file is due: half, or twice that
	file *os.File
	size int64
}

// Earlier is the name of the file that has what came before.
func Earlier(name string) string { return name + ".1" }

// Create opens a file, which is continued if it exists. Together with the earlier one it takes most bytes.
func Create(name string, most int64) (*File, error) {
	if err := replaceable(name); err != nil {
		return nil, err
	}
	f := &File{name: name, half: most / 2, full: most / 2}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
}

// replaceable checks that a full file will be able to take the place of the earlier one.
func replaceable(name string) error {
	var first []byte
	earlier, err := os.Open(Earlier(name))
	if err == nil {
		first, err = bufio.NewReader(io.LimitReader(earlier, mostFirst)).ReadBytes('\n')
		_ = earlier.Close()
	}
	switch {
	case errors.Is(err, os.ErrNotExist), errors.Is(err, io.EOF) && len(first) == 0:
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case !begins(first):
		return fmt.Errorf("%s exists, and is no record of redlock record: it would be replaced", Earlier(name))
	}
	probe, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return fmt.Errorf("%s could not be replaced when it is full: %w", name, err)
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}

func (f *File) open() error {
	file, err := os.OpenFile(f.name, os.O_CREATE|os.O_APPEND|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	about, err := file.Stat()
	if err == nil && !about.Mode().IsRegular() {
		err = fmt.Errorf("%s is no regular file, and its size could not be bounded", f.name)
	}
	if err == nil {
		err = alone(file)
	}
	size := int64(0)
	if err == nil {
		size, err = continued(file)
	}
	if err == nil && about.Mode().Perm()&0o077 != 0 { // it will have tokens, with which locks can be released
		err = file.Chmod(0o600)
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, size
	return nil
}

// continued checks that a file is a record, or has nothing, and gives its size. It ends the last line, which a power
// failure or a full disk may have cut; if that is the first one, too, the file begins anew.
func continued(file *os.File) (size int64, err error) {
	if size, err = file.Seek(0, io.SeekEnd); err != nil || size == 0 {
		return size, err
	}
	first, err := bufio.NewReader(io.NewSectionReader(file, 0, mostFirst)).ReadBytes('\n')
	switch {
	case err != nil && !errors.Is(err, io.EOF):
		return 0, err
	case err != nil && bytes.HasPrefix(first, []byte(beginning)[:min(len(beginning), len(first))]) && !json.Valid(first):
		return 0, file.Truncate(0)
	case !begins(first):
		return 0, fmt.Errorf("%s exists, and is no record of redlock record", file.Name())
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, size-1); err != nil || last[0] == '\n' {
		return size, err
	}
	_, err = file.WriteString("\n")
	return size + 1, err
}

const (
	beginning = `{"time":"` // of a line
	mostFirst = 1 << 20     // bytes of the first line
)

// begins reports whether a record may begin with this line.
func begins(text []byte) bool {
	var first Line
	return json.Unmarshal(text, &first) == nil && first.Set != nil
}

// errFull means that it is time for next.
var errFull = errors.New("the file is full")

// add appends a line, if there is room for it.
func (f *File) add(l *Line) error {
	text, err := encode(l)
	if err != nil {
		return err
	}
	if f.size+int64(len(text)) > f.full || f.lost() {
		return errFull
	}
	n, err := f.file.Write(text)
	f.size += int64(n)
	return err
}

func encode(l *Line) ([]byte, error) {
	text, err := json.Marshal(l)
	return append(text, '\n'), err
}

// lost reports whether somebody has deleted the file, put another one in its place, or cut it: what follows would not be
// found, or have no beginning.
func (f *File) lost() bool {
	about, err := f.file.Stat()
	return err != nil || about.Size() < f.size || !same(f.file, f.name)
}

// next begins a new file. One that was lost does not take the place of the earlier one. Windows renames and replaces no
// file that somebody has open, as redlock explain does for a moment: there a full file may go on until it is twice as large.
func (f *File) next() error {
	lost := f.lost()
	if lost && same(f.file, f.name) {
		if err := f.file.Truncate(0); err != nil {
			return err
		}
	}
	if err := f.file.Close(); err != nil {
		return err
	}
	full := f.half
	if !lost {
		if err := os.Rename(f.name, Earlier(f.name)); err != nil {
			if runtime.GOOS != "windows" || f.full > f.half {
				return err
			}
			full *= 2
		}
	}
	f.full = full
	return f.open()
}

// Lines reads the lines of a file, and of the earlier one before it if that is there. A line that was cut, as by
// a power failure, is left out.
func Lines(name string, each func(*Line)) error {
	files, err := pair(name)
	for _, file := range files {
		if err == nil {
			err = lines(file, each)
		}
		_ = file.Close()
	}
	return err
}

// pair opens a file, and the earlier one before it if that is there. They are of one instant: between the two, the
// recorder may begin a new file.
func pair(name string) (files []*os.File, err error) {
	for range 10 {
		for _, file := range files {
			_ = file.Close()
		}
		files = nil
		last, err := os.Open(name)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		first, before := os.Open(Earlier(name))
		if first != nil {
			files = append(files, first)
		}
		if last != nil {
			files = append(files, last)
		}
		if before != nil && !errors.Is(before, os.ErrNotExist) {
			return files, before
		}
		if same(last, name) {
			break
		}
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
	return files, nil
}

// same reports whether a file still has this name; nil: whether still none has.
func same(file *os.File, name string) bool {
	is, err := os.Stat(name)
	if file == nil || err != nil {
		return file == nil && err != nil
	}
	was, err := file.Stat()
	return err == nil && os.SameFile(was, is)
}

func lines(file *os.File, each func(*Line)) error {
	in := bufio.NewReaderSize(file, 1<<16)
	for number := 1; ; number++ {
		text, err := in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var l Line
		switch err := json.Unmarshal(text, &l); {
		case number == 1 && (err != nil || l.Set == nil):
			return fmt.Errorf("%s is no record of redlock record: its first line is %.60q", file.Name(), text)
		case err == nil:
			l.Name += string(l.Odd)
			each(&l)
		}
	}
}
