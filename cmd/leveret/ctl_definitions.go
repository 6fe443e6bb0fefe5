package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"

	"github.com/spf13/cobra"
)

func definitionCommands() []command {
	return []command{
		{use: "export_definitions FILE", short: "Write users, virtual hosts, queues and the rest to a file; - is standard output", args: cobra.ExactArgs(1), run: exportDefinitions},
		{use: "import_definitions [FILE]", short: "Read definitions from a file or standard input; what is there already stays", args: cobra.MaximumNArgs(1), run: importDefinitions},
		{use: "definitions", short: "Compare, export or import definitions: diff, export, import", sub: definitionsCommands()},
	}
}

// definitionsPath is that of a vhost's definitions if one is named.
func (s *session) definitionsPath() string {
	if s.flags.Changed("vhost") {
		return apiPath("definitions", s.opts.vhost)
	}
	return apiPath("definitions")
}

// exportDefinitions writes one line of JSON to standard output (RabbitMQ 4.0),
// and an indented file, which people compare.
func exportDefinitions(ctx context.Context, s *session, args []string) error {
	var raw []byte
	if err := s.api.get(ctx, s.definitionsPath(), &raw); err != nil {
		return orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost)
	}
	if args[0] == "-" {
		s.printf("%s\n", bytes.TrimSpace(raw))
		return nil
	}
	s.say("Exporting definitions in JSON to a file at %q ...", args[0])
	return writeJSON(args[0], raw)
}

// writeJSON writes a file that only its owner may read: it has hashes of
// passwords.
func writeJSON(file string, raw []byte) error {
	var indented bytes.Buffer
	if err := json.Indent(&indented, raw, "", "  "); err != nil {
		return exitf(exitSoftware, "the broker's answer is not JSON: %v", err)
	}
	if err := os.WriteFile(file, indented.Bytes(), 0o600); err != nil {
		return exitf(exitData, "cannot write the definitions: %v", err)
	}
	return nil
}

func importDefinitions(ctx context.Context, s *session, args []string) error {
	from := "-"
	if len(args) > 0 {
		from = args[0]
	}
	raw, err := s.readAll(from)
	if err != nil {
		return err
	}
	if !json.Valid(raw) {
		return exitf(exitData, "the definitions in %s are not JSON; export_definitions writes such a file", or(from == "-", "standard input", from))
	}
	s.say("Importing definitions in JSON from %s ...", or(from == "-", "standard input", `"`+from+`"`))
	return s.api.post(ctx, s.definitionsPath(), raw, nil)
}

// readAll reads a file; - is standard input.
func (s *session) readAll(file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(s.in)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, exitf(exitData, "cannot read: %v", err)
	}
	return raw, nil
}
