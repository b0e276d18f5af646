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

// A File is the file of a record: lines are appended to it, and its size is bounded. When it is half full, it is
// renamed to Earlier(name), in the place of the file of that name, and a new one begins.
type File struct {
	name string
	half int64
	full int64 // at which size the next file is due: half, or twice that
	file *os.File
	size int64
}

// Earlier returns the name of the file that has the lines before those of the file with this name.
func Earlier(name string) string { return name + ".1" }

// Create opens the file of a record, or makes one; lines are added. Both it and Earlier(name) must be records, if they
// exist, that no other process writes, and have at most most bytes together.
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

// replaceable returns an error if a full file could not become Earlier(name): what is there is no record, say.
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
	if err == nil && lockFile(file) { // each recorder would rename the other's file
		err = fmt.Errorf("another redlock record writes to %s", f.name)
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

// continued checks that a file is a record, or empty, and returns its size. A power failure or a full disk may have cut
// the last line: continued ends it with a line end, or empties the file if it is the only line.
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

// begins reports whether text is a line with which a record may begin: one that names the set (Line.Set).
func begins(text []byte) bool {
	var first Line
	return json.Unmarshal(text, &first) == nil && first.Set != nil
}

// errFull means that it is time for next.
var errFull = errors.New("the file is full")

// add appends a line. It returns errFull if there is no room for it, or the file is lost: then call next.
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

// lost reports whether somebody has deleted, replaced or cut the file, so that nobody would find what is added to it.
func (f *File) lost() bool {
	about, err := f.file.Stat()
	return err != nil || about.Size() < f.size || !same(f.file, f.name)
}

// next renames the file to Earlier, and begins a new one. Of lost files, one that was cut is emptied, others are left alone.
// Windows renames and replaces no file that somebody has open, as redlock explain does for a moment: there a full file may
// go on until it is twice as large.
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

// Lines calls each with the lines of a record: those of Earlier(name), if it exists, and then those of the file itself.
// It skips a line that was cut, as by a power failure. The error says why a file cannot be read, or is no record.
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

// pair opens Earlier(name) and the file itself, without one that does not exist; neither: an error. It opens both again
// if the recorder has begun a new file in between. The caller closes the files, also after an error.
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

// same reports whether the file with this name is still the one that is open. file nil: whether there is still none.
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
