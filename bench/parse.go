package bench

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leveretmq/leveret/frames"
)

// A Size is one kind of body: of Min to Max bytes, equally likely, in Weight
// messages of all.
type Size struct{ Min, Max, Weight int }

// Sizes are the sizes of a publisher's bodies.
type Sizes []Size

// ParseSizes reads a list of sizes in bytes: "100", "16,1K:3" (three of four
// messages have 1024 bytes), "100-2000" (random, evenly). K, M and B are units.
func ParseSizes(text string) (Sizes, error) {
	var sizes Sizes
	for part := range strings.SplitSeq(text, ",") {
		s, err := parseSize(strings.TrimSpace(part))
		if err != nil {
			return nil, err
		}
		sizes = append(sizes, s)
	}
	if len(sizes) > 100 {
		return nil, fmt.Errorf("%d sizes are too many, at most 100 are possible", len(sizes))
	}
	return sizes, nil
}

func parseSize(text string) (Size, error) {
	s := Size{Weight: 1}
	what, weight, weighted := strings.Cut(text, ":")
	if weighted {
		n, err := strconv.Atoi(weight)
		if err != nil || n < 1 || n > 1000 {
			return Size{}, fmt.Errorf("size %q: the weight after the colon must be 1 to 1000", text)
		}
		s.Weight = n
	}
	from, to, ranged := strings.Cut(what, "-")
	var err error
	if s.Min, err = parseBytes(from); err != nil {
		return Size{}, err
	}
	s.Max = s.Min
	if !ranged {
		return s, nil
	}
	if s.Max, err = parseBytes(to); err != nil {
		return Size{}, err
	}
	if s.Max < s.Min {
		return Size{}, fmt.Errorf("size %q: the range ends before it begins", text)
	}
	return s, nil
}

func parseBytes(text string) (int, error) {
	digits, factor := text, 1
	for _, unit := range []struct {
		suffix string
		factor int
	}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"K", 1 << 10}, {"k", 1 << 10}, {"M", 1 << 20}, {"B", 1}} {
		if d, ok := strings.CutSuffix(text, unit.suffix); ok {
			digits, factor = d, unit.factor
			break
		}
	}
	n, err := strconv.ParseUint(digits, 10, 31)
	if err != nil || int64(n)*int64(factor) > maxBodySize {
		return 0, fmt.Errorf("size %q is not a number of bytes up to 512M; write 100, 64K, 1M, 100-2000 or 100,1000:3", text)
	}
	return int(n) * factor, nil
}

// String is what ParseSizes reads.
func (s Sizes) String() string {
	var b strings.Builder
	for i, p := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.Itoa(p.Min))
		if p.Max != p.Min {
			fmt.Fprintf(&b, "-%d", p.Max)
		}
		if p.Weight != 1 {
			fmt.Fprintf(&b, ":%d", p.Weight)
		}
	}
	return b.String()
}

// max is the largest body, in bytes.
func (s Sizes) max() int {
	n := 0
	for _, p := range s {
		n = max(n, p.Max)
	}
	return n
}

// min is the smallest size.
func (s Sizes) min() int {
	n := s.max()
	for _, p := range s {
		n = min(n, p.Min)
	}
	return n
}

// weight is how many messages one round of all sizes has.
func (s Sizes) weight() int {
	n := 0
	for _, p := range s {
		n += p.Weight
	}
	return n
}

// A Rate is a pace that is kept For some time; zero is for ever.
type Rate struct {
	PerSecond float64
	For       time.Duration
}

// Rates are paces that follow one another, again and again.
type Rates []Rate

// maxRate is the fastest pace that can be asked for, in messages a second.
const maxRate = 100e6

// ParseRates reads messages a second: "1000", "2.5k", or a sequence as
// "1000:30s,5000:10s". "0" alone is no limit; in a sequence it is a pause.
func ParseRates(text string) (Rates, error) {
	if strings.TrimSpace(text) == "0" {
		return nil, nil
	}
	var rates Rates
	sum := 0.0
	for part := range strings.SplitSeq(text, ",") {
		number, length, sequenced := strings.Cut(strings.TrimSpace(part), ":")
		n, err := parseRate(number)
		if err != nil {
			return nil, err
		}
		r := Rate{PerSecond: n}
		if sequenced {
			if r.For, err = parseDuration(length); err != nil {
				return nil, err
			}
			if r.For < time.Millisecond {
				return nil, fmt.Errorf("rate %q: a pace must be kept for a millisecond at least", part)
			}
		}
		rates = append(rates, r)
		sum += n
	}
	for _, r := range rates {
		if len(rates) > 1 && r.For == 0 {
			return nil, fmt.Errorf("rate %q: each rate of a sequence needs its time, as in 1000:30s,5000:10s", text)
		}
	}
	if sum == 0 {
		return nil, fmt.Errorf("rate %q never publishes", text)
	}
	return rates, nil
}

// parseRate reads a number of messages a second.
func parseRate(text string) (float64, error) {
	n, err := parseNumber(text)
	if err != nil || n < 0 || n > maxRate || (n > 0 && n < 1e-3) {
		return 0, fmt.Errorf("rate %q is not a number of messages a second from 0.001 to 100M; write 1000, 2.5k or 1000:30s,5000:10s", text)
	}
	return n, nil
}

// parseNumber reads a decimal number with k or M behind it, which are thousands
// and millions.
func parseNumber(text string) (float64, error) {
	digits, factor := text, 1.0
	if d, ok := strings.CutSuffix(text, "M"); ok {
		digits, factor = d, 1e6
	} else if d, ok := strings.CutSuffix(strings.ToLower(text), "k"); ok {
		digits, factor = d, 1e3
	}
	n, err := strconv.ParseFloat(digits, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, errors.New("not a number")
	}
	return n * factor, nil
}

// parseCount reads a whole number, which may be written as 1M or 20k.
func parseCount(text string) (int64, error) {
	n, err := parseNumber(text)
	if err != nil || n != math.Trunc(n) || math.Abs(n) > 1e15 {
		return 0, fmt.Errorf("%q is not a whole number; write 1000, 20k or 1M", text)
	}
	return int64(n), nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is not a duration; write 500us, 10ms, 30s or 5m", text)
	}
	return d, nil
}

// String is what ParseRates reads.
func (r Rates) String() string {
	if len(r) == 0 {
		return "0"
	}
	parts := make([]string, len(r))
	for i, p := range r {
		parts[i] = strconv.FormatFloat(p.PerSecond, 'f', -1, 64)
		if p.For > 0 {
			parts[i] += ":" + p.For.String()
		}
	}
	return strings.Join(parts, ",")
}

// ParseArguments reads a list of arguments, "x-max-length=1000,x-overflow=reject-publish",
// as a field table. true, false and whole numbers are what they look like,
// anything else is a string.
func ParseArguments(text string) (frames.Table, error) {
	var t frames.Table
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok || name == "" || len(name) > 255 {
			return nil, fmt.Errorf("argument %q has no name and value; write name=value,name=value", part)
		}
		t = t.Set(name, argumentValue(value))
	}
	return t, nil
}

func argumentValue(text string) any {
	if text == "true" || text == "false" {
		return text == "true"
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return n
	}
	return text
}

// formatArguments is what ParseArguments reads.
func formatArguments(t frames.Table) string {
	parts := make([]string, len(t))
	for i, f := range t {
		parts[i] = fmt.Sprintf("%s=%v", f.Name, f.Value)
	}
	return strings.Join(parts, ",")
}
