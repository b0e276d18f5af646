package recording

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// A File takes lines, and is never larger than a bound. When it is half full, it takes the place of the file
// with the name and ".1", and a new one begins.
type File struct {
	name string
	half int64
	file *os.File
	size int64
}

// Earlier is the name of the file that has what came before.
func Earlier(name string) string { return name + ".1" }

// Create opens a file, which is continued if it exists. Together with the earlier one it takes most bytes.
func Create(name string, most int64) (*File, error) {
	f := &File{name: name, half: most / 2}
	if err := f.open(); err != nil {
		return nil, err
	}
	return f, nil
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
	if err == nil && about.Size() > 0 {
		err = continued(file, about.Size())
	}
	if err != nil {
		return errors.Join(err, file.Close())
	}
	f.file, f.size = file, about.Size()
	return nil
}

// continued checks that a file is a record, and ends its last line, which a power failure may have cut.
func continued(file *os.File, size int64) error {
	var first Line
	if err := json.NewDecoder(file).Decode(&first); err != nil || first.Set == nil {
		return fmt.Errorf("%s exists, and is no record of redlock record", file.Name())
	}
	last := make([]byte, 1)
	if _, err := file.ReadAt(last, size-1); err != nil || last[0] == '\n' {
		return err
	}
	_, err := file.WriteString("\n")
	return err
}

// errFull means that it is time for next.
var errFull = errors.New("the file is full")

// add appends a line, if there is room for it.
func (f *File) add(l *Line) error {
	text, err := encode(l)
	if err != nil {
		return err
	}
	if f.size+int64(len(text)) > f.half {
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

// next begins a new file.
func (f *File) next() error {
	if err := f.file.Close(); err != nil {
		return err
	}
	if err := os.Rename(f.name, Earlier(f.name)); err != nil {
		return err
	}
	return f.open()
}

// Lines reads the lines of a file, and of the earlier one before it if that is there. A line that was cut, as by
// a power failure, is left out.
func Lines(name string, each func(*Line)) error {
	found := false
	for _, name := range []string{Earlier(name), name} {
		file, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			found = true
			err = errors.Join(lines(file, each), file.Close())
		}
		if err != nil {
			return err
		}
	}
	if !found {
		return fmt.Errorf("open %s: %w", name, os.ErrNotExist)
	}
	return nil
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
			each(&l)
		}
	}
}
