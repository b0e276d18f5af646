package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"html"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/quorumlock/redlock/cmd/redlock/internal/screen"
)

// A picturePiece is a piece of a line: what has one style, and no gap in it.
type picturePiece struct {
	text          string
	at            int // the column where it begins
	bold, reverse bool
}

// pictureLine takes a line of a screen apart, which has the styles that redlock top gives it and no others.
func pictureLine(t *testing.T, line string) (pieces []picturePiece) {
	t.Helper()
	var is picturePiece
	for rest := line; rest != ""; {
		text, after, styled := strings.Cut(rest, "\x1b[")
		for text != "" {
			// Pieces with their own places keep columns in theirs, whatever the font.
			piece := is
			end := len(text)
			if gap := strings.Index(text, "  "); gap >= 0 && !is.reverse {
				end = gap + len(text[gap:]) - len(strings.TrimLeft(text[gap:], " "))
			}
			piece.text, text = text[:end], text[end:]
			pieces = append(pieces, piece)
			is.at += screen.Width(piece.text)
		}
		if !styled {
			break
		}
		sgr, after, found := strings.Cut(after, "m")
		if !found {
			t.Fatalf("%q is no style", after)
		}
		for _, style := range strings.Split(sgr, ";") {
			switch style {
			case "", "0":
				is.bold, is.reverse = false, false
			case "1":
				is.bold = true
			case "7":
				is.reverse = true
			case "39", "49": // the colours of the terminal
			default:
				t.Errorf("a picture has no style %s", style)
			}
		}
		rest = after
	}
	return pieces
}

const pictureStyle = `<style>
.page { fill: #ffffff; stroke: #d0d7de }
text { font: 14px ui-monospace, SFMono-Regular, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", "Liberation Mono", monospace; fill: #1f2328; white-space: pre }
.bold { font-weight: 700 }
.bar { fill: #1f2328 }
.on { fill: #ffffff }
@media (prefers-color-scheme: dark) {
	.page { fill: #0d1117; stroke: #3d444d }
	text { fill: #f0f6fc }
	.bar { fill: #d1d7e0 }
	.on { fill: #0d1117 }
}
</style>
`

// drawScreen draws a screen so many columns wide as an SVG, on a light ground or on a dark one, as its reader's
// colour scheme is.
func drawScreen(t *testing.T, title string, columns int, lines []string) string {
	t.Helper()
	const cell, row, margin, base = 8.4, 18, 12, 13.5
	width, height := int(2*margin+float64(columns)*cell), 2*margin+row*len(lines)
	var svg strings.Builder
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" role="img">
<title>%s</title>
<!-- what tmux shows, drawn by cmd/redlock/top_picture_linux_test.go: do not edit -->
`, width, height, width, height, html.EscapeString(title))
	svg.WriteString(pictureStyle)
	fmt.Fprintf(&svg, `<rect class="page" x="0.5" y="0.5" width="%d" height="%d" rx="6"/>`+"\n", width-1, height-1)
	for i, line := range lines {
		y := float64(margin + row*i)
		for _, p := range pictureLine(t, line) {
			x, long := margin+float64(p.at)*cell, float64(screen.Width(p.text))*cell
			if p.reverse {
				fmt.Fprintf(&svg, `<rect class="bar" x="%.1f" y="%.1f" width="%.1f" height="%d"/>`, x, y, long, row)
			}
			text := strings.TrimRight(p.text, " ")
			if text == "" {
				continue
			}
			var classes []string
			if p.bold {
				classes = append(classes, "bold")
			}
			if p.reverse {
				classes = append(classes, "on")
			}
			class := ""
			if len(classes) > 0 {
				class = ` class="` + strings.Join(classes, " ") + `"`
			}
			fmt.Fprintf(&svg, `<text%s x="%.1f" y="%.1f" textLength="%.1f" lengthAdjust="spacingAndGlyphs" xml:space="preserve">%s</text>`,
				class, x, y+base, float64(screen.Width(text))*cell, html.EscapeString(text))
		}
		svg.WriteString("\n")
	}
	return svg.String() + "</svg>\n"
}

// draw draws what is on the screen, checks that the picture has each word of it, and writes it for the documentation
// if the pictures are to be written.
func (s *tmuxSession) draw(file, title string, columns int) {
	s.Helper()
	lines := s.screen("-e", "-N") // with styles, also of spaces at the end
	picture := drawScreen(s.T, title, columns, lines)
	var words []string
	in := ""
	for parts := xml.NewDecoder(strings.NewReader(picture)); ; {
		part, err := parts.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			s.Fatalf("%s: %v", file, err)
		}
		switch part := part.(type) {
		case xml.StartElement:
			in = part.Name.Local
		case xml.EndElement:
			in = ""
		case xml.CharData:
			if in == "text" {
				words = append(words, strings.Fields(string(part))...)
			}
		}
	}
	if want := strings.Fields(regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(strings.Join(lines, "\n"), "")); !slices.Equal(words, want) {
		s.Errorf("%s has %q, want %q", file, words, want)
	}
	if *update {
		writePicture(s.T, file, []byte(picture))
	}
}
