package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// moreNodeSettings are those of the node without a flag.
func moreNodeSettings() []Setting {
	return []Setting{
		{Name: "node-tags", Default: "none", set: func(c *Config, s string) error { return setPairs(&c.NodeTags, s) }},
		{Name: "cluster-tags", Default: "none", set: func(c *Config, s string) error { return setPairs(&c.ClusterTags, s) }},
		{Name: "pid-file", Default: "none", set: func(c *Config, s string) error { return setTextOrNone(&c.PidFile, s) }},
		{Name: "keep-pid-file", Default: "false", Switch: true, set: func(c *Config, s string) error { return setSwitch(&c.KeepPidFile, s) }},
		{Name: "definitions-skip-unchanged", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.SkipUnchanged, s) }},
		{Name: "definitions-hash", Default: "sha256",
			set: func(c *Config, s string) error {
				return setWord(&c.DefinitionsHash, s, "sha", "sha224", "sha256", "sha384", "sha512")
			}},
		{Name: "product-version", Default: "this build's",
			set:  func(c *Config, s string) error { return setText(&c.ProductVersion, s) },
			show: func(*Config) string { return "this build's" }},
		{Name: "motd-file", Default: "none", set: func(c *Config, s string) error { return setTextOrNone(&c.Motd, s) }},
	}
}

// seedSettings are what vhosts get when they are made. They have no flag. Each
// value has lines NAME.FIELD=VALUE.
func seedSettings() []Setting {
	return []Setting{
		{Name: "default-users", Default: "none", Secrets: hidePasswords, set: setDefaultUsers},
		{Name: "default-limits", Default: "none", set: setDefaultLimits},
		{Name: "default-policies", Default: "none", set: setDefaultPolicies},
	}
}

// messageSettings are what becomes of messages. They have no flag.
func messageSettings() []Setting {
	return []Setting{
		{Name: "add-timestamp", Default: "no", set: func(c *Config, s string) error { return setAddition(&c.Intercept.Timestamp, s) }},
		{Name: "add-routing-node", Default: "no", set: func(c *Config, s string) error { return setAddition(&c.Intercept.RoutingNode, s) }},
		{Name: "refuse-transient-queues", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.Deprecated.TransientQueues, s) }},
		{Name: "relaxed-quorum-queues", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.RelaxedQuorumQueues, s) }},
		{Name: "refuse-master-locator", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.Deprecated.MasterLocator, s) }},
		{Name: "ignore-global-qos", Default: "false", Switch: true,
			set: func(c *Config, s string) error { return setSwitch(&c.Deprecated.GlobalQoS, s) }},
	}
}

// setAddition takes no, missing or overwrite.
func setAddition(to *Addition, text string) error {
	if text == "no" {
		*to = NoAddition
		return nil
	}
	if err := setWord(to, text, Missing, Overwrite); err != nil {
		return errors.New("want no, missing or overwrite")
	}
	return nil
}

// A field is one line NAME.FIELD=VALUE.
type field struct{ of, name, value string }

// fieldsOf cuts a text of such lines.
func fieldsOf(text string) ([]field, error) {
	var list []field
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		at := strings.LastIndex(key, ".")
		if !ok || at <= 0 {
			return nil, errors.New("want lines NAME.FIELD=VALUE")
		}
		list = append(list, field{key[:at], key[at+1:], value})
	}
	return list, nil
}

// hidePasswords shows such a text without its passwords.
func hidePasswords(text string) string {
	list, err := fieldsOf(text)
	if err != nil {
		return "(hidden)"
	}
	var lines []string
	for _, f := range list {
		if f.name == "password" {
			f.value = "(hidden)"
		}
		lines = append(lines, f.of+"."+f.name+"="+f.value)
	}
	return strings.Join(lines, "\n")
}

// collect makes one T for each name, in order of the names.
func collect[T any](text string, fresh func(name string) T, set func(t *T, f field) error) ([]T, error) {
	if text == "none" {
		return nil, nil
	}
	fields, err := fieldsOf(text)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(fields, func(a, b field) int { return cmp.Compare(a.of, b.of) })
	var list []T
	for i, f := range fields {
		if i == 0 || fields[i-1].of != f.of {
			list = append(list, fresh(f.of))
		}
		if err := set(&list[len(list)-1], f); err != nil {
			return nil, fmt.Errorf("%s of %s: %w", f.name, f.of, err)
		}
	}
	return list, nil
}

func setDefaultUsers(c *Config, text string) error {
	fresh := func(name string) DefaultUser {
		return DefaultUser{Name: name, VHosts: ".*", Permissions: Permissions{".*", ".*", ".*"}}
	}
	list, err := collect(text, fresh, func(u *DefaultUser, f field) error {
		switch f.name {
		case "password":
			u.Password = f.value
			return nil
		case "vhost_pattern":
			return setPattern(&u.VHosts, f.value)
		case "configure":
			return setPattern(&u.Permissions.Configure, f.value)
		case "write":
			return setPattern(&u.Permissions.Write, f.value)
		case "read":
			return setPattern(&u.Permissions.Read, f.value)
		case "tags":
			return setList(&u.Tags, f.value)
		}
		return errors.New("want vhost_pattern, password, configure, read, write or tags")
	})
	c.DefaultUsers = list
	return err
}

func setDefaultLimits(c *Config, text string) error {
	fresh := func(id string) DefaultLimits {
		return DefaultLimits{ID: id, VHosts: ".*", MaxConnections: -1, MaxQueues: -1}
	}
	list, err := collect(text, fresh, func(l *DefaultLimits, f field) error {
		switch f.name {
		case "pattern":
			return setPattern(&l.VHosts, f.value)
		case "max_connections":
			return setLimit(&l.MaxConnections, f.value)
		case "max_queues":
			return setLimit(&l.MaxQueues, f.value)
		}
		return errors.New("want pattern, max_connections or max_queues")
	})
	c.DefaultLimits = list
	return err
}

// setLimit takes a number from 0, or infinity, which is -1.
func setLimit(to *int, text string) error {
	if text == "infinity" || text == "-1" {
		*to = -1
		return nil
	}
	return setNumber(to, text, 1<<31-1)
}

// appliesTo are the kinds of queue that a policy may be for.
func appliesTo() []string {
	return []string{"queues", "classic_queues", "quorum_queues", "streams", "all"}
}

func setDefaultPolicies(c *Config, text string) error {
	fresh := func(name string) DefaultPolicy {
		return DefaultPolicy{Name: name, VHosts: ".*", Queues: ".*", ApplyTo: "all", Definition: map[string]int64{}}
	}
	list, err := collect(text, fresh, func(p *DefaultPolicy, f field) error {
		switch f.name {
		case "vhost_pattern":
			return setPattern(&p.VHosts, f.value)
		case "queue_pattern":
			return setPattern(&p.Queues, f.value)
		case "apply_to":
			return setWord(&p.ApplyTo, f.value, appliesTo()...)
		}
		n, err := policyNumber(f)
		p.Definition[strings.ReplaceAll(f.name, "_", "-")] = n
		return err
	})
	c.DefaultPolicies = list
	return err
}

// policyNumber takes a time with a unit, in milliseconds, a size, or a number.
func policyNumber(f field) (int64, error) {
	switch f.name {
	case "expires", "message_ttl":
		if n, err := strconv.ParseInt(f.value, 10, 64); err == nil && n >= 0 {
			return n, nil
		}
		return policyTime(f.value)
	case "max_length_bytes", "max_in_memory_bytes":
		return parseSize(f.value)
	case "queue_version":
		if f.value != "1" && f.value != "2" {
			return 0, errors.New("want 1 or 2")
		}
		return int64(f.value[0] - '0'), nil
	case "max_length", "delivery_limit", "max_in_memory_length":
		n, err := strconv.ParseInt(f.value, 10, 64)
		if err != nil || n < 0 {
			return 0, errors.New("want a number")
		}
		return n, nil
	}
	return 0, errors.New("want vhost_pattern, queue_pattern, apply_to, expires, message_ttl, max_length, max_length_bytes, max_in_memory_length, max_in_memory_bytes, queue_version or delivery_limit")
}

// policyTime takes a time with a unit, days too, in milliseconds.
func policyTime(text string) (int64, error) {
	bad := errors.New("want a time such as 500ms, 10m, 2h or 7d")
	if number, days := strings.CutSuffix(text, "d"); days {
		n, err := strconv.Atoi(number)
		if err != nil || n < 0 || n > 36_500 {
			return 0, bad
		}
		return (time.Duration(n) * 24 * time.Hour).Milliseconds(), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, bad
	}
	return d.Milliseconds(), nil
}

// setPairs takes name=value with commas in between, or the word none.
func setPairs(to *map[string]string, text string) error {
	*to = nil
	if text == "none" {
		return nil
	}
	pairs := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok || name == "" {
			return errors.New("want name=value with commas in between, or none")
		}
		pairs[strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
	*to = pairs
	return nil
}

// setHeaders takes lines NAME=VALUE, or the word none. An empty value leaves
// the header out.
func setHeaders(to *map[string]string, text string) error {
	*to = nil
	if text == "none" {
		return nil
	}
	headers := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, ok := strings.Cut(strings.TrimRight(line, "\r\n"), "=")
		if !ok || !headerName.MatchString(name) || strings.ContainsAny(value, "\r\n") {
			return errors.New("want lines NAME=VALUE")
		}
		headers[name] = value
	}
	*to = headers
	return nil
}

// headerName is what a header may be called.
var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// setPath takes a path of HTTP.
func setPath(to *string, text string) error {
	if !strings.HasPrefix(text, "/") || strings.ContainsAny(text, "? #") {
		return errors.New("want a path such as /metrics")
	}
	*to = text
	return nil
}
