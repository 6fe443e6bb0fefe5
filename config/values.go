package config

import (
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leveretmq/leveret/pattern"
)

// setAddress takes host:port. The host may be empty (all interfaces) or a
// name; whether it can be listened on is found out by listening.
func setAddress(to *string, text string) error {
	_, port, err := net.SplitHostPort(text)
	if err != nil {
		return errors.New("want host:port, as in 127.0.0.1:5672")
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return errors.New("the port must be a number from 0 to 65535")
	}
	*to = text
	return nil
}

// setAddresses takes one or more host:port with commas in between, or the word
// off.
func setAddresses(to *string, text string) error {
	if text == "off" {
		*to = ""
		return nil
	}
	var one string
	for address := range strings.SplitSeq(text, ",") {
		if err := setAddress(&one, strings.TrimSpace(address)); err != nil {
			return err
		}
	}
	*to = strings.ReplaceAll(text, " ", "")
	return nil
}

// Addresses cuts a list of addresses as Config has them.
func Addresses(list string) []string {
	if list == "" {
		return nil
	}
	return strings.Split(list, ",")
}

// setAddressOrOff takes host:port, or the word off.
func setAddressOrOff(to *string, text string) error {
	if text == "off" {
		*to = ""
		return nil
	}
	return setAddress(to, text)
}

func setText(to *string, text string) error {
	if text == "" {
		return errors.New("it must not be empty")
	}
	*to = text
	return nil
}

// setTextOrNone takes a text, or the word none.
func setTextOrNone(to *string, text string) error {
	if text == "none" {
		*to = ""
		return nil
	}
	return setText(to, text)
}

// setNodeName takes name@host; a name alone is one on this machine.
func setNodeName(c *Config, text string) error {
	name, host, full := strings.Cut(text, "@")
	if name == "" || full && host == "" {
		return errors.New("want a name such as rabbit@host")
	}
	if full {
		c.NodeName = text
		return nil
	}
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("the name of this machine is unknown (%w): want a name such as rabbit@host", err)
	}
	host, _, _ = strings.Cut(host, ".")
	c.NodeName = name + "@" + host
	return nil
}

// setList takes words with commas in between, or the word none.
func setList(to *[]string, text string) error {
	*to = []string{}
	if text == "none" {
		return nil
	}
	for word := range strings.SplitSeq(text, ",") {
		if word = strings.TrimSpace(word); word == "" {
			return errors.New("want words with commas in between, or none")
		}
		*to = append(*to, word)
	}
	return nil
}

// setPattern takes a regular expression; the empty one matches nothing but the
// empty name, as in RabbitMQ.
func setPattern(to *string, text string) error {
	if _, err := pattern.Compile(text); err != nil {
		return fmt.Errorf("want a regular expression: %w", err)
	}
	*to = text
	if text == "" {
		*to = "^$"
	}
	return nil
}

func setPatternOrNone(to *string, text string) error {
	if text == "none" {
		*to = ""
		return nil
	}
	return setPattern(to, text)
}

// setCompiledOrNone is setPatternOrNone for a pattern that is matched often; "none"
// is nil.
func setCompiledOrNone(to **pattern.Pattern, text string) error {
	var expr string
	if err := setPatternOrNone(&expr, text); err != nil || expr == "" {
		*to = nil
		return err
	}
	var err error
	*to, err = pattern.Compile(expr)
	return err
}

func setMechanisms(to *[]string, text string) error {
	var list []string
	if err := setList(&list, text); err != nil {
		return err
	}
	known := []string{"PLAIN", "AMQPLAIN", "ANONYMOUS", "EXTERNAL"}
	for _, m := range list {
		if !slices.Contains(known, m) {
			return fmt.Errorf("there is no mechanism %s: want some of %v", m, known)
		}
	}
	if len(list) == 0 {
		return errors.New("without a mechanism nobody could log in")
	}
	*to = list
	return nil
}

func setVerify(t *TLS, text string) error {
	if text != "verify_peer" && text != "verify_none" {
		return errors.New("want verify_peer or verify_none")
	}
	t.VerifyPeer = text == "verify_peer"
	return nil
}

// setVersions takes versions of TLS. They must follow one another.
func setVersions(to *[]string, text string) error {
	var list []string
	if err := setList(&list, text); err != nil {
		return err
	}
	known := []string{"tlsv1", "tlsv1.1", "tlsv1.2", "tlsv1.3"}
	var places []int
	for _, v := range list {
		at := slices.Index(known, v)
		if at < 0 {
			return fmt.Errorf("there is no version %s: want some of %v", v, known)
		}
		places = append(places, at)
	}
	slices.Sort(places)
	places = slices.Compact(places)
	if len(places) == 0 || places[len(places)-1]-places[0] != len(places)-1 {
		return errors.New("want versions without a gap between them, such as tlsv1.2,tlsv1.3")
	}
	*to = known[places[0] : places[len(places)-1]+1]
	return nil
}

// setNumber takes a number from 0 to most.
func setNumber(to *int, text string, most int) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return fmt.Errorf("want a number from 0 to %d", most)
	}
	*to = n
	return nil
}

// setNumberOrInfinity takes a number; infinity is 0.
func setNumberOrInfinity(to *int, text string) error {
	if text == "infinity" {
		*to = 0
		return nil
	}
	if err := setNumber(to, text, math.MaxInt32); err != nil || *to == 0 {
		return errors.New("want a number above 0, or infinity")
	}
	return nil
}

// setFrameMax takes the size of a frame. The smallest is what the protocol
// demands (spec §4.2.3).
func setFrameMax(c *Config, text string) error {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n != 0 && n < 4096 || n > math.MaxInt32 {
		return fmt.Errorf("want a number of bytes from 4096 to %d, or 0 for no limit", math.MaxInt32)
	}
	c.Limits.FrameMax = n
	return nil
}

// setInitialFrameMax takes the size of a frame before tuning, in bytes.
func setInitialFrameMax(c *Config, text string) error {
	n, err := strconv.Atoi(text)
	if err != nil || n < 4096 || n > 1<<20 {
		return fmt.Errorf("want a number of bytes from 4096 to %d", 1<<20)
	}
	c.Limits.InitialFrameMax = n
	return nil
}

// setMaxMessageSize takes the size of the largest body. RabbitMQ 4.0 allows
// 512 MiB at most.
func setMaxMessageSize(c *Config, text string) error {
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	if n > 512<<20 {
		return errors.New("the largest message may have 512MiB")
	}
	c.Limits.MaxMessageSize = n
	return nil
}

// setDuration takes a time such as 30s or 10m, from 0 to most.
func setDuration(to *time.Duration, text string, most time.Duration) error {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > most {
		return fmt.Errorf("want a time such as 500ms, 30s or 10m, at most %s", most)
	}
	*to = d
	return nil
}

func setPositiveDuration(to *time.Duration, text string) error {
	var d time.Duration
	if err := setDuration(&d, text, 100*365*24*time.Hour); err != nil || d == 0 {
		return errors.New("want a time such as 500ms, 30s or 10m")
	}
	*to = d
	return nil
}

// setSampleInterval takes how often figures are sampled: with less than a tenth
// of a second there would be little time for anything else.
func setSampleInterval(to *time.Duration, text string) error {
	var d time.Duration
	if err := setDuration(&d, text, time.Hour); err != nil || d < 100*time.Millisecond {
		return errors.New("want a time from 100ms to 1h")
	}
	*to = d
	return nil
}

func setSwitch(to *bool, text string) error {
	on, err := strconv.ParseBool(text)
	if err != nil {
		return errors.New("want true or false")
	}
	*to = on
	return nil
}

// setWord takes one of a few words.
func setWord[T ~string](to *T, text string, words ...T) error {
	if !slices.Contains(words, T(text)) {
		return fmt.Errorf("want one of %v", words)
	}
	*to = T(text)
	return nil
}

// setProfile takes a profile, and with it the garbage collector's pace and the
// memory of queues: on a small machine memory is worth more than the time to
// collect it and to read messages back.
func setProfile(c *Config, text string) error {
	if err := setWord(&c.Profile, text, Server, Tiny); err != nil {
		return err
	}
	if c.Profile == Tiny {
		c.GCHeadroom = 8 << 20
		c.QueueMemory = 16 << 20
	}
	return nil
}

// setSize takes a number of bytes with an optional unit.
func setSize(to *int64, text string) error {
	n, err := parseSize(text)
	if err != nil {
		return err
	}
	*to = n
	return nil
}

func setSizeOrNone(to *int64, text string) error {
	if text == "none" {
		*to = 0
		return nil
	}
	return setSize(to, text)
}

// setMemoryAvailable takes the machine's memory, and with it the default of the
// memory limit.
func setMemoryAvailable(c *Config, text string) error {
	if err := setSize(&c.MemoryAvailable, text); err != nil {
		return err
	}
	c.MemoryLimit = c.MemoryAvailable / 100 * memoryShare
	return nil
}

// setShare takes a size, or a percentage of the memory.
func setShare(to *int64, text string, memory int64) error {
	number, percent := strings.CutSuffix(text, "%")
	if !percent {
		return setSize(to, text)
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if err != nil || !(f > 0 && f <= 10_000) {
		return errors.New("want a percentage such as 40%")
	}
	*to = int64(float64(memory) / 100 * f)
	return nil
}

// sizeUnits are the units of a size in lower case. RabbitMQ 4.0: kB, MB, GB
// and TB are powers of 1000; KiB, MiB, GiB and TiB, also as one letter or two,
// are powers of 1024.
var sizeUnits = map[string]int64{
	"": 1, "b": 1,
	"kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
	"kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40,
	"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40,
	"k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40,
}

// parseSize reads a positive size such as 512MiB, 2GB or 1000000.
func parseSize(text string) (int64, error) {
	bad := errors.New("want a size such as 512MiB, 2GB or a number of bytes")
	digits := strings.TrimRight(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
	unit, known := sizeUnits[strings.ToLower(strings.TrimSpace(text[len(digits):]))]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n <= 0 || n > (1<<62)/unit {
		return 0, bad
	}
	return n * unit, nil
}
