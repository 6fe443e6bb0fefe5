package config

import (
	"errors"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// onlyNone takes none, which turns a listener off.
func onlyNone(_, text string) (string, error) {
	if text != "none" {
		return "", errors.New("want none, or a name after the key as in listeners.tcp.1 = 5672")
	}
	return "off", nil
}

func none(_, text string) (string, error) {
	if text != "none" {
		return "", errors.New("want none, or a name after the key and true or false")
	}
	return text, nil
}

// address takes a port, which means all interfaces, or an address and a port;
// IPv6 addresses may do without brackets (RabbitMQ 4.0).
func address(_, text string) (string, error) {
	host, port := "", text
	if i := strings.LastIndex(text, ":"); i >= 0 {
		host, port = text[:i], text[i+1:]
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return "", errors.New("want a port such as 5672, or an address and a port such as 127.0.0.1:5672 or [::1]:5672")
	}
	return net.JoinHostPort(host, port), nil
}

// addAddress adds an address, unless none has turned them all off.
func addAddress(have, text string) string {
	if have == "off" {
		return have
	}
	return addWord(have, text)
}

func addWord(have, text string) string {
	if have == "" {
		return text
	}
	return have + "," + text
}

// addName adds a name; "" is one that is not to be in the list.
func addName(have, text string) string {
	switch {
	case text == "" && have == "", have == "none" && text == "":
		return "none"
	case text == "":
		return have
	case have == "none":
		return text
	}
	return addWord(have, text)
}

func nameIfTrue(name, text string) (string, error) {
	on, err := boolean("", text)
	if err != nil || on != "true" {
		return "", err
	}
	return name, nil
}

// setPort and setHost make an address of keys for its parts, unless none has
// turned it off. Without a host it is all interfaces.
func setPort(have, port string) string {
	if have == "off" {
		return have
	}
	host, _, _ := net.SplitHostPort(have) // "" at first
	return net.JoinHostPort(host, port)
}

func setHost(port string) func(have, host string) string {
	return func(have, host string) string {
		if have == "off" {
			return have
		}
		if _, p, err := net.SplitHostPort(have); err == nil {
			return net.JoinHostPort(host, p)
		}
		return net.JoinHostPort(host, port)
	}
}

func boolean(_, text string) (string, error) {
	switch text {
	case "true", "on":
		return "true", nil
	case "false", "off":
		return "false", nil
	}
	return "", errors.New("want true or false")
}

func not(_, text string) (string, error) {
	on, err := boolean("", text)
	if on == "true" {
		return "false", err
	}
	return "true", err
}

// share takes a part of the memory such as 0.4.
func share(_, text string) (string, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f > 0 && f <= 100) {
		return "", errors.New("want a part of the memory such as 0.4")
	}
	return strconv.FormatFloat(f*100, 'f', -1, 64) + "%", nil
}

func seconds(_, text string) (string, error) { return duration(text, time.Second, "seconds") }

func milliseconds(_, text string) (string, error) {
	return duration(text, time.Millisecond, "milliseconds")
}

func duration(text string, unit time.Duration, name string) (string, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > int64(100*365*24*time.Hour/unit) {
		return "", errors.New("want a number of " + name)
	}
	return (time.Duration(n) * unit).String(), nil
}

// levelWord takes RabbitMQ's name of a level. What is above error is critical.
func levelWord(_, text string) (string, error) {
	switch text {
	case "debug", "info", "error":
		return text, nil
	case "notice":
		return "info", nil
	case "warning", "warn":
		return "warn", nil
	case "critical", "alert", "emergency", "none":
		return "critical", nil
	}
	return "", errors.New("want debug, info, notice, warning, error, critical or none")
}

func formatWord(_, text string) (string, error) {
	switch text {
	case "plaintext":
		return "console", nil
	case "json":
		return text, nil
	}
	return "", errors.New("want plaintext or json")
}

func pathOrFalse(_, text string) (string, error) {
	if text == "false" {
		return "none", nil
	}
	return filepath.Clean(text), nil
}

func hash(_, text string) (string, error) {
	switch text {
	case "rabbit_password_hashing_sha256":
		return "SHA256", nil
	case "rabbit_password_hashing_sha512":
		return "SHA512", nil
	}
	return "", errors.New("want rabbit_password_hashing_sha256 or rabbit_password_hashing_sha512")
}

// stdio takes the stream that the console's log goes to; true is standard error.
func stdio(_, text string) (string, error) {
	switch text {
	case "stdout", "standard_io":
		return "false", nil
	case "stderr", "standard_error":
		return "true", nil
	}
	return "", errors.New("want stdout or stderr")
}

func colours(_, text string) (string, error) {
	on, err := boolean("", text)
	if on == "true" {
		return "always", err
	}
	return "never", err
}

// categoryLevel takes the level of one category.
func categoryLevel(category string) func(_, text string) (string, error) {
	return func(_, text string) (string, error) {
		level, err := levelWord("", text)
		return category + "=" + level, err
	}
}

// categoryFile takes the file of one category.
func categoryFile(category string) func(_, text string) (string, error) {
	return func(_, text string) (string, error) { return pair(category, filepath.Clean(text)) }
}

// rotationLine makes CATEGORY.FIELD=VALUE.
func rotationLine(field string) func(category, text string) (string, error) {
	return func(category, text string) (string, error) {
		line := category + "." + field + "=" + text
		return line, setCategoryRotation(&Config{}, line)
	}
}

// ratesMode takes how much of rates there is; true is what basic means.
func ratesMode(_, text string) (string, error) {
	switch text {
	case "basic", "detailed":
		return "true", nil
	case "none":
		return "false", nil
	}
	return "", errors.New("want basic, detailed or none")
}

func zeroIsNone(_, text string) (string, error) {
	if text == "0" {
		return "none", nil
	}
	return text, nil
}

// addition takes whether what is there already is overwritten; that the key is
// there at all turns it on (RabbitMQ 4.0).
func addition(_, text string) (string, error) {
	on, err := boolean("", text)
	if on == "true" {
		return string(Overwrite), err
	}
	return string(Missing), err
}

// least takes the smaller of two limits.
func least(have, text string) string {
	a, err := strconv.Atoi(have)
	if err != nil { // none yet, or infinity
		return text
	}
	if b, err := strconv.Atoi(text); text == "infinity" || err == nil && b > a {
		return have
	}
	return text
}

// pair makes name=value.
func pair(name, text string) (string, error) {
	if strings.ContainsAny(text, ",=") {
		return "", errors.New("commas and = cannot be part of it")
	}
	return name + "=" + text, nil
}

// fieldLine makes NAME.FIELD=VALUE.
func fieldLine(field string) func(name, text string) (string, error) {
	return func(name, text string) (string, error) {
		_, err := fieldsOf(name + "." + field + "=" + text)
		return name + "." + field + "=" + text, err
	}
}

// passwordLine is fieldLine for a password, which may have any bytes.
func passwordLine(name, text string) (string, error) { return name + ".password=" + text, nil }

// headerLine makes NAME=VALUE for a header of HTTP. The words none and empty
// leave it out.
func headerLine(header string) func(_, text string) (string, error) {
	return func(_, text string) (string, error) {
		if text == "none" {
			text = ""
		}
		return header + "=" + text, nil
	}
}

func addLine(have, text string) string {
	if have == "" {
		return text
	}
	return have + "\n" + text
}
