package repotest_test

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// The measures of the picture, in pixels. It is narrow, so that a telephone does not make its text much smaller.
const (
	lifeWidth   = 480.0
	lifeLeft    = 76.0 // of the beginning
	lifeRight   = 466.0
	lifeTop     = 46.0 // of the first lane
	lifeLane    = 27.0 // from lane to lane
	lifeBar     = 17.0
	lifeGap     = 10.0 // between the clients' lanes and those of the nodes
	lifeLine    = 18.0 // from line to line of the text
	lifeNumber  = 9.0  // the radius of a number
	lifeRounded = 10 * time.Millisecond
)

// The picture brings its own background and its own colours for dark pages, since a page that shows it as an
// image cannot give it any.
const lifeStyle = `
.page { fill: #ffffff; stroke: #d0d7de }
text { font: 13px -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: #1f2328 }
.name { font-weight: 600 }
.soft { fill: #59636e }
.base { stroke: #d0d7de }
.at { stroke: #59636e; stroke-dasharray: 1 3 }
.number { fill: #59636e }
.digit { fill: #ffffff; font-weight: 600; text-anchor: middle }
.A { fill: #0969da }
.B { fill: #bc4c00 }
.key { opacity: .45 }
.on { fill: #ffffff; font-weight: 600 }
.wait { stroke: #bc4c00; stroke-width: 2; stroke-dasharray: 5 4 }
.down { fill: url(#hatch); stroke: #818b98 }
.hatch { stroke: #818b98; stroke-width: 1.5 }
.quarantine { fill: none; stroke: #9a6700; stroke-width: 1.5; stroke-dasharray: 4 3 }
.because { fill: #7d4e00 }
.plate { fill: #ffffff }
.vote { stroke: #ffffff; stroke-width: 1 }
.grant { fill: #ffffff; stroke-width: 2 }
.grant.A { fill: #ffffff; stroke: #0969da }
.grant.B { fill: #ffffff; stroke: #bc4c00 }
@media (prefers-color-scheme: dark) {
	.page { fill: #0d1117; stroke: #3d444d }
	text { fill: #f0f6fc }
	.soft { fill: #9198a1 }
	.base { stroke: #3d444d }
	.at { stroke: #9198a1 }
	.number { fill: #9198a1 }
	.digit, .on { fill: #0d1117 }
	.A { fill: #58a6ff }
	.B { fill: #f0883e }
	.wait { stroke: #f0883e }
	.down { stroke: #656c76 }
	.hatch { stroke: #656c76 }
	.quarantine { stroke: #d29922 }
	.because { fill: #e3b341 }
	.plate { fill: #0d1117 }
	.vote { stroke: #0d1117 }
	.grant.A { fill: #0d1117; stroke: #58a6ff }
	.grant.B { fill: #0d1117; stroke: #f0883e }
}
`

// A lifeMoment is one of those that the picture has a number and a line of text for.
type lifeMoment struct {
	at   time.Duration
	text string
}

// draw makes an SVG of the life.
func (l *life) draw() string {
	var s strings.Builder
	put := func(format string, args ...any) { fmt.Fprintf(&s, format+"\n", args...) }
	moments := l.moments()

	nodesTop := lifeTop + 2*lifeLane + lifeGap
	lanesEnd := nodesTop + lifeNodes*lifeLane
	legend := lanesEnd + 30
	text := legend + 72
	height := text + 2
	for _, m := range moments {
		height += lifeLine*float64(len(strings.Split(m.text, "\n"))) + 4
	}
	height -= lifeLine - 10
	put(`<svg xmlns="http://www.w3.org/2000/svg" width="%g" height="%g" viewBox="0 0 %g %g" role="img">`, lifeWidth, height, lifeWidth, height)
	put(`<title>The life of a lock over five nodes</title>`)
	put(`<!-- drawn by internal/repotest/life_test.go from the events of a run: do not edit -->`)
	put(`<style>%s</style>`, lifeStyle)
	put(`<defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line class="hatch" x1="0" y1="0" x2="0" y2="6"/></pattern></defs>`)
	put(`<rect class="page" x="0.5" y="0.5" width="%g" height="%g" rx="6"/>`, lifeWidth-1, height-1)

	x := func(at time.Duration) float64 {
		return lifeLeft + float64(at.Round(lifeRounded))/float64(lifeEnd)*(lifeRight-lifeLeft)
	}
	box := func(class string, span lifeSpan, y, h float64) {
		to := span.to
		if to == 0 {
			to = lifeEnd
		}
		put(`<rect class="%s" x="%.1f" y="%.1f" width="%.1f" height="%.1f" rx="2"/>`, class, x(span.from), y, x(to)-x(span.from), h)
	}
	lane := func(name string, y float64) {
		put(`<text class="name" x="14" y="%.1f">%s</text>`, y+lifeBar-4, name)
		put(`<line class="base" x1="%g" y1="%.1f" x2="%g" y2="%.1f"/>`, lifeLeft, y+lifeBar/2, lifeRight, y+lifeBar/2)
	}
	label := func(class string, span lifeSpan, y float64, text string) {
		put(`<text class="%s" x="%.1f" y="%.1f" text-anchor="middle">%s</text>`, class, (x(span.from)+x(span.to))/2, y+lifeBar-4.5, text)
	}

	// The axis, and the moments through all lanes.
	for at := time.Duration(0); at <= lifeEnd; at += 4 * time.Second {
		put(`<text class="soft" x="%.1f" y="%.1f" text-anchor="middle">%v</text>`, x(at), lanesEnd+14, at)
	}
	for i, m := range moments {
		put(`<line class="at" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x(m.at), 20+lifeNumber, x(m.at), lanesEnd)
		put(`<circle class="number" cx="%.1f" cy="20" r="%g"/><text class="digit" x="%.1f" y="24.5">%d</text>`, x(m.at), lifeNumber, x(m.at), i+1)
	}

	for i, client := range []string{"A", "B"} {
		y := lifeTop + float64(i)*lifeLane
		lane("client "+client, y)
		for _, wait := range l.waits(client) {
			put(`<line class="wait" x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f"/>`, x(wait.from), y+lifeBar/2, x(wait.to), y+lifeBar/2)
			put(`<text class="soft" x="%.1f" y="%.1f" text-anchor="end">waits</text>`, x(wait.from)-5, y+lifeBar-4.5)
		}
		for _, hold := range l.holds(client) {
			box(client, hold, y, lifeBar)
			label("on", hold, y, "holds")
		}
	}
	for i := range lifeNodes {
		y := nodesTop + float64(i)*lifeLane
		lane(fmt.Sprintf("node %d", i+1), y)
		for _, down := range l.down[i] {
			box("down", down, y, lifeBar)
			put(`<rect class="plate" x="%.1f" y="%.1f" width="44" height="%g"/>`, (x(down.from)+x(down.to))/2-22, y+1, lifeBar-2)
			label("soft", down, y, "down")
		}
		for _, key := range l.keys[i] {
			box("plate", key.lifeSpan, y+3, lifeBar-6)
			box("key "+key.client, key.lifeSpan, y+3, lifeBar-6)
		}
		for _, q := range l.quarantine[i] {
			box("quarantine", q, y-2, lifeBar+4)
			q.from = lifeSecondRelease // where there is room
			label("because", q, y, "quarantine")
		}
		for _, v := range l.votes {
			if v.node != i || v.step == "release" {
				continue
			}
			class, r := "vote ", 4.5
			if !v.counts {
				class, r = "grant ", 3.5
			}
			put(`<circle class="%s%s" cx="%.1f" cy="%.1f" r="%g"/>`, class, v.client, x(v.at), y+lifeBar/2, r)
		}
	}

	// The legend, in two rows of three.
	for i, entry := range []struct{ draw, text string }{
		{`<rect class="key A" y="3" width="24" height="11" rx="2"/>`, "has A's lock"},
		{`<circle class="vote A" cx="5" cy="8.5" r="4.5"/><circle class="vote B" cx="18" cy="8.5" r="4.5"/>`, "granted: a vote"},
		{`<rect class="down" x=".5" y="1" width="23" height="15" rx="2"/>`, "down"},
		{`<rect class="key B" y="3" width="24" height="11" rx="2"/>`, "has B's lock"},
		{`<circle class="grant A" cx="12" cy="8.5" r="3.5"/>`, "granted, but no vote"},
		{`<rect class="quarantine" x=".5" y="1" width="23" height="15" rx="2"/>`, "in quarantine"},
	} {
		at := []float64{14, 146, 330}[i%3]
		put(`<g transform="translate(%g %g)">%s<text class="soft" x="32" y="13">%s</text></g>`, at, legend+float64(i/3*22), entry.draw, entry.text)
	}

	for i, m := range moments {
		put(`<circle class="number" cx="23" cy="%.1f" r="%g"/><text class="digit" x="23" y="%.1f">%d</text>`, text-4.5, lifeNumber-1, text, i+1)
		for _, line := range strings.Split(m.text, "\n") {
			put(`<text x="40" y="%.1f">%s</text>`, text, line)
			text += lifeLine
		}
		text += 4
	}
	put(`</svg>`)
	return s.String()
}

// moments are what the text tells, with the figures of the run.
func (l *life) moments() []lifeMoment {
	var all []lifeMoment
	add := func(at time.Duration, format string, args ...any) {
		all = append(all, lifeMoment{at, fmt.Sprintf(format, args...)})
	}
	call := func(client, op string, after time.Duration) lifeCall {
		for _, c := range l.calls {
			if c.client == client && c.op == op && c.from >= after {
				return c
			}
		}
		return lifeCall{}
	}
	killed := fmt.Sprintf("nodes %d and %d", lifeKilled[0]+1, lifeKilled[1]+1)
	quarantine := l.quarantine[lifeKilled[0]][0]

	c := call("A", "acquire", 0)
	votes, _ := l.granted(c, "acquire")
	add(c.from, "A acquires the lock with %d of %d votes.\nIts fencing token is %d.", votes, lifeNodes, c.fence)
	add(l.down[lifeKilled[0]][0].from, "N%s are killed.\nA majority of the nodes is left, and the lock stays valid.", killed[1:])
	c = call("A", "extend", 0)
	votes, _ = l.granted(c, "extend")
	add(c.from, "A extends the lock with %d of %d votes, to %.1f s from now.", votes, lifeNodes, c.valid.Seconds())
	b := call("B", "acquire", 0)
	add(b.from, "B asks for the lock, is refused, and waits in the queue.")
	c = call("A", "release", 0)
	add(c.from, "A releases the lock. B has it %d ms later (a round trip takes\n%d ms). B's fencing token is %d.",
		(b.to - c.from).Round(time.Millisecond).Milliseconds(), lifeTrip.Milliseconds(), b.fence)
	add(l.down[lifeKilled[0]][0].to, "N%s come back without their data. They may have\nforgotten a lock, so they have no vote for %.1f s.", killed[1:], (quarantine.to - quarantine.from).Seconds())
	c = call("A", "acquire", lifeSecond)
	votes, grants := l.granted(c, "acquire")
	add(c.from, "A acquires the lock again, with %d of %d votes. The grants of\nthe %d nodes in quarantine are no votes.", votes, lifeNodes, grants)
	add(quarantine.to, "What they may have forgotten has ended:\n%s vote again.", killed)
	c = call("A", "acquire", lifeThird)
	votes, _ = l.granted(c, "acquire")
	add(c.from, "A acquires the lock with %d of %d votes.\nIts fencing token is %d.", votes, lifeNodes, c.fence)
	return all
}

// granted counts the nodes that granted a step of a call: with a vote, and without one.
func (l *life) granted(c lifeCall, step string) (votes, grants int) {
	for _, v := range l.votes {
		switch {
		case v.client != c.client || v.step != step || v.at < c.from || v.at > c.to+lifeTrip:
		case v.counts:
			votes++
		default:
			grants++
		}
	}
	return votes, grants
}

// holds is when a client has the lock: from the end of its acquire to the beginning of its release.
func (l *life) holds(client string) (all []lifeSpan) {
	for _, c := range l.calls {
		switch {
		case c.client != client:
		case c.op == "acquire":
			all = append(all, lifeSpan{from: c.to})
		case c.op == "release":
			all[len(all)-1].to = c.from
		}
	}
	return all
}

// waits is when a client waits for the lock.
func (l *life) waits(client string) (all []lifeSpan) {
	for _, c := range l.calls {
		if c.client == client && c.op == "acquire" && c.waited > 0 {
			all = append(all, lifeSpan{c.to - c.waited, c.to})
		}
	}
	return slices.Clip(all)
}
