package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// A key is one of rabbitmq.conf and the setting it is for.
type key struct {
	// pattern is the key, or ends in .* for any name there.
	pattern string
	setting string
	// convert makes the setting's text of the file's; nil takes it as it is.
	// name is what stands for the *.
	convert func(name, text string) (string, error)
	// merge adds to what earlier lines have made, which is "" at first; nil
	// replaces it.
	merge func(have, text string) string
}

// match says whether a pattern covers a key, and what stands for its *. A * at
// the end takes one name or more, elsewhere exactly one.
func match(pattern, key string) (name string, ok bool) {
	before, after, wild := strings.Cut(pattern, "*")
	if !wild {
		return "", pattern == key
	}
	rest, ok := strings.CutPrefix(key, before)
	if !ok {
		return "", false
	}
	name, ok = strings.CutSuffix(rest, after)
	return name, ok && name != "" && (after == "" || !strings.Contains(name, "."))
}

// chooseEntries takes over what the files say. Of a key that is there twice the
// last one counts (RabbitMQ 4.0).
func (l *loader) chooseEntries(entries []entry) {
	last := map[string]int{}
	for i, e := range entries {
		last[e.key] = i
	}
	if i, given := last["management.listener.ssl"]; given {
		l.oldHTTPS = entries[i].value == "true"
	}
	for i, e := range entries {
		if last[e.key] != i {
			if !known(e.key) {
				l.fail(unknown(e))
			}
			continue
		}
		l.fail(l.chooseEntry(e))
	}
	if _, given := l.chosen["management-tls-listen"]; l.oldHTTPS && !given {
		l.fail(errors.New("management.listener.ssl = true needs a port: set management.listener.port"))
	}
}

func (l *loader) chooseEntry(e entry) error {
	e, err := l.decrypted(e)
	if err != nil {
		return err
	}
	for _, k := range keys() {
		if name, ok := match(k.pattern, e.key); ok {
			if l.oldHTTPS && strings.HasPrefix(k.pattern, "management.listener.") && k.setting == "management-listen" {
				k.setting = "management-tls-listen"
			}
			return l.chooseKey(k, name, e)
		}
	}
	for _, r := range restrictions() {
		if _, ok := match(r.pattern, e.key); ok {
			switch {
			case r.allowed == nil: // the value may be a private key, or have a password in it
				return fmt.Errorf("%s: %s: %s", e.where(), e.key, r.why)
			case !slices.Contains(r.allowed, e.value):
				return fmt.Errorf("%s: %s = %s: %s", e.where(), e.key, e.value, r.why)
			}
			return nil
		}
	}
	if !known(e.key) {
		return unknown(e)
	}
	l.note(e.where() + ": " + e.key + " is accepted and has no effect")
	return nil
}

func (l *loader) chooseKey(k key, name string, e entry) error {
	label := fmt.Sprintf("%s: %s = %s", e.where(), e.key, e.value)
	if secret(k.setting) || strings.HasSuffix(k.pattern, ".password") {
		label = fmt.Sprintf("%s: %s", e.where(), e.key)
	}
	text := e.value
	if k.convert != nil {
		var err error
		if text, err = k.convert(name, text); err != nil {
			return fmt.Errorf("%s: %w", label, err)
		}
	}
	if k.setting == "management-rates" && e.value == "detailed" {
		l.note(e.where() + ": management.rates_mode = detailed is taken as basic: the rates between single channels and queues are not kept")
	}
	if k.merge != nil {
		text = k.merge(l.chosen[k.setting].text, text)
	}
	l.chosen[k.setting] = choice{text: text, origin: e.where() + " " + e.key, label: label}
	return nil
}

// secret says whether a setting's value must not be shown.
func secret(setting string) bool {
	for _, s := range allSettings() {
		if s.Name == setting {
			return s.Secret
		}
	}
	return false
}

// patterns lists every key there is, those that act first.
func patterns() []string {
	var list []string
	for _, k := range keys() {
		list = append(list, k.pattern)
	}
	for _, r := range restrictions() {
		list = append(list, r.pattern)
	}
	return append(list, idleKeys()...)
}

func known(key string) bool {
	return slices.ContainsFunc(patterns(), func(p string) bool {
		_, ok := match(p, key)
		return ok
	})
}
