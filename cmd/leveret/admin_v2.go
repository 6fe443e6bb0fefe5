package main

import (
	"strings"
)

// The rabbitmqadmin of RabbitMQ 4.1 and later has commands of two words and
// options in place of name=value arguments: `declare queue --name q --type
// quorum`. They are turned into those of the one before it.

// fromV2 turns a command line of the newer rabbitmqadmin into one of the older.
// What is of the older one stays as it is.
func fromV2(args []string) []string {
	before, command, rest := cutCommand(args)
	if len(command) == 0 || !isV2(command, rest) {
		return args
	}
	return append(before, v2Command(command, rest)...)
}

// cutCommand cuts a command line into the options before the command, the words
// of the command, and what follows those.
func cutCommand(args []string) (before, command, rest []string) {
	i := 0
	for i < len(args) && strings.HasPrefix(args[i], "-") {
		if takesValue(args[i]) {
			i++
		}
		i++
	}
	i = min(i, len(args))
	n := i
	for n < len(args) && n < i+2 && !strings.HasPrefix(args[n], "-") && !strings.Contains(args[n], "=") {
		n++
	}
	return args[:i:i], args[i:n], args[n:]
}

// takesValue says whether a value follows this option of rabbitmqadmin.
func takesValue(option string) bool {
	if strings.Contains(option, "=") || !strings.HasPrefix(option, "--") && len(option) > 2 {
		return false
	}
	switch option {
	case "-q", "--quiet", "-s", "--ssl", "-R", "--sort-reverse", "-h", "--help", "-k", "--ssl-insecure", "--ssl-disable-hostname-verification", "--version", "--bash-completion":
		return false
	}
	return true
}

// isV2 says whether the command is one of the newer rabbitmqadmin: by its words,
// or because it has options where the older one has none.
func isV2(command, rest []string) bool {
	switch command[0] {
	case "definitions", "health_check":
		return true
	case "publish", "get":
		return len(command) == 2
	}
	for _, arg := range rest {
		if name, isOption := strings.CutPrefix(arg, "--"); isOption && len(command) == 2 && !globalOption(name) {
			return true
		}
	}
	return false
}

// globalOption says whether an option after the command is about all commands.
func globalOption(name string) bool {
	name, _, _ = strings.Cut(name, "=")
	switch name {
	case "vhost", "host", "port", "format", "quiet", "ssl", "sort", "sort-reverse", "help", "url", "config", "path-prefix", "depth", "node", "username", "password",
		"base-uri", "request-timeout", "declare-vhost", "ssl-insecure", "ssl-disable-hostname-verification", "ssl-ca-cert-file", "ssl-cert-file", "ssl-key-file", "version", "bash-completion":
		return true
	}
	return false
}

// argumentOf says whether an option that is about all commands elsewhere is an
// argument of this one.
func argumentOf(command []string, name string) bool {
	name, _, _ = strings.Cut(name, "=")
	return name == "port" && command[0] == "health_check" || name == "password" && strings.Join(command, " ") == "declare user"
}

// v2Command is the command in the older form.
func v2Command(command, rest []string) []string {
	var options, arguments []string
	file := ""
	for i := 0; i < len(rest); i++ {
		name, isOption := strings.CutPrefix(rest[i], "--")
		if !isOption || globalOption(name) && !argumentOf(command, name) {
			options = append(options, rest[i])
			if takesValue(rest[i]) && strings.HasPrefix(rest[i], "-") && i+1 < len(rest) {
				i++
				options = append(options, rest[i])
			}
			continue
		}
		name, value, given := strings.Cut(name, "=")
		if !given && i+1 < len(rest) {
			i++
			value = rest[i]
		}
		if name == "file" {
			file = value
			continue
		}
		arguments = append(arguments, v2Name(command, name)+"="+value)
	}
	switch {
	case command[0] == "definitions" && len(command) == 2:
		command = []string{command[1], file}
	case command[0] == "publish" || command[0] == "get":
		command = command[:1]
	case len(command) == 2 && command[1] == "permissions" && command[0] != "list":
		command = []string{command[0], "permission"}
	}
	return append(append(options, command...), arguments...)
}

// v2Name is what the older rabbitmqadmin calls an argument.
func v2Name(command []string, name string) string {
	switch name {
	case "type":
		if command[len(command)-1] == "queue" {
			return "queue_type"
		}
	case "ack-mode":
		return "ackmode"
	case "apply-to":
		return name
	}
	return strings.ReplaceAll(name, "-", "_")
}
