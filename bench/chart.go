package bench

import (
	"fmt"
	"html"
	"math"
	"strings"
)

// A chart is a plot of lines that is written as SVG.
type chart struct {
	title  string
	y      func(float64) string // how values are written
	x      axis
	log    bool // the values' axis is logarithmic
	series []series
}

// A series is one line. A value that is NaN is a gap.
type series struct {
	name   string
	points []point
}

type point struct{ x, y float64 }

// An axis places x values, 0 to 1 from left to right, and writes some of them.
type axis struct {
	place func(float64) float64
	ticks []tick
	name  string
}

type tick struct {
	at   float64
	text string
}

// The size of a chart, and of the margins that hold its texts, in pixels.
const (
	chartWidth  = 860.0
	chartHeight = 260.0
	marginLeft  = 76.0
	marginRight = 12.0
	marginTop   = 30.0
	marginBelow = 40.0
	lineColours = 6 // classes c0 to c5 of the style sheet
)

// timeAxis is an axis of seconds.
func timeAxis(from, to float64) axis {
	if to <= from {
		to = from + 1
	}
	a := axis{name: "seconds", place: func(v float64) float64 { return (v - from) / (to - from) }}
	step := niceStep(to-from, 10)
	for v := math.Ceil(from/step) * step; v <= to+step/1e6; v += step {
		a.ticks = append(a.ticks, tick{v, trimmed(v)})
	}
	return a
}

// percentileAxis is an axis on which each further nine takes the same room.
func percentileAxis() axis {
	const most = 6 // 99.9999 %
	nines := func(p float64) float64 { return min(most, -math.Log10(max(1e-9, 1-p/100))) }
	a := axis{name: "percentile", place: func(p float64) float64 { return nines(p) / most }}
	for _, p := range []float64{0, 50, 75, 90, 95, 99, 99.9, 99.99, 99.999} {
		a.ticks = append(a.ticks, tick{p, trimmed(p) + " %"})
	}
	return a
}

// niceStep divides a range into at most so many steps of 1, 2 or 5 times a power
// of ten.
func niceStep(span float64, steps int) float64 {
	raw := span / float64(steps)
	unit := math.Pow10(int(math.Floor(math.Log10(raw))))
	for _, f := range []float64{1, 2, 5} {
		if unit*f >= raw*0.9999 {
			return unit * f
		}
	}
	return unit * 10
}

func trimmed(v float64) string {
	text := fmt.Sprintf("%.3f", v)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// bounds are the least and largest value that the chart shows.
func (c *chart) bounds() (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, s := range c.series {
		for _, p := range s.points {
			if math.IsNaN(p.y) || c.log && p.y <= 0 {
				continue
			}
			low, high = min(low, p.y), max(high, p.y)
		}
	}
	switch {
	case math.IsInf(low, 0):
		return 0, 1
	case c.log:
		low, high = math.Pow10(int(math.Floor(math.Log10(low)))), math.Pow10(int(math.Ceil(math.Log10(high))))
		if low == high {
			high *= 10
		}
		return low, high
	}
	step := niceStep(max(high, 1e-3), 5)
	return 0, max(step, math.Ceil(high/step)*step)
}

// yTicks are the values that are written beside the chart.
func (c *chart) yTicks(low, high float64) []float64 {
	var ticks []float64
	if c.log {
		for v := low; v <= high*1.001; v *= 10 {
			ticks = append(ticks, v)
		}
		return ticks
	}
	step := niceStep(high-low, 5)
	for v := low; v <= high+step/1e6; v += step {
		ticks = append(ticks, v)
	}
	return ticks
}

// svg writes the chart.
func (c *chart) svg(b *strings.Builder) {
	low, high := c.bounds()
	fmt.Fprintf(b, `<svg viewBox="0 0 %.0f %.0f" role="img"><title>%s</title>`, chartWidth, chartHeight, html.EscapeString(c.title))
	fmt.Fprintf(b, `<text class="t" x="%.0f" y="14">%s</text>`, marginLeft, html.EscapeString(c.title))
	c.grid(b, low, high)
	for i, s := range c.series {
		c.line(b, i, s, low, high)
		fmt.Fprintf(b, `<text class="l c%d" x="%.1f" y="14">%s</text>`, i%lineColours, 330+float64(i)*88, html.EscapeString(s.name))
	}
	b.WriteString("</svg>\n")
}

func (c *chart) grid(b *strings.Builder, low, high float64) {
	for _, v := range c.yTicks(low, high) {
		y := c.placeY(v, low, high)
		fmt.Fprintf(b, `<path class="g" d="M%.1f %.1fH%.1f"/><text class="y" x="%.1f" y="%.1f">%s</text>`,
			marginLeft, y, chartWidth-marginRight, marginLeft-6, y+4, html.EscapeString(c.y(v)))
	}
	for _, t := range c.x.ticks {
		x := c.placeX(t.at)
		fmt.Fprintf(b, `<path class="g" d="M%.1f %.1fV%.1f"/><text class="x" x="%.1f" y="%.1f">%s</text>`,
			x, marginTop, chartHeight-marginBelow, x, chartHeight-marginBelow+16, html.EscapeString(t.text))
	}
	fmt.Fprintf(b, `<text class="x" x="%.1f" y="%.1f">%s</text>`, (marginLeft+chartWidth-marginRight)/2, chartHeight-6, c.x.name)
}

func (c *chart) placeX(v float64) float64 {
	return marginLeft + c.x.place(v)*(chartWidth-marginLeft-marginRight)
}

func (c *chart) placeY(v, low, high float64) float64 {
	part := (v - low) / (high - low)
	if c.log {
		part = math.Log(max(v, low)/low) / math.Log(high/low)
	}
	return chartHeight - marginBelow - part*(chartHeight-marginTop-marginBelow)
}

// line draws one series, and a dot with its value at each point if there are not
// too many.
func (c *chart) line(b *strings.Builder, i int, s series, low, high float64) {
	var path strings.Builder
	move := byte('M')
	for _, p := range s.points {
		if math.IsNaN(p.y) {
			move = 'M'
			continue
		}
		fmt.Fprintf(&path, "%c%.1f %.1f", move, c.placeX(p.x), c.placeY(p.y, low, high))
		move = 'L'
	}
	fmt.Fprintf(b, `<path class="s c%d" d="%s"/>`, i%lineColours, path.String())
	if len(s.points) > 200 {
		return
	}
	for _, p := range s.points {
		if !math.IsNaN(p.y) {
			fmt.Fprintf(b, `<circle class="c%d" cx="%.1f" cy="%.1f" r="2.5"><title>%s: %s at %s</title></circle>`, i%lineColours,
				c.placeX(p.x), c.placeY(p.y, low, high), html.EscapeString(s.name), html.EscapeString(c.y(p.y)), trimmed(p.x))
		}
	}
}
