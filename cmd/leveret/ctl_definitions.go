package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/broker"
)

func definitionCommands() []command {
	return []command{
		{use: "export_definitions FILE", short: "Write users, virtual hosts, queues and the rest to a file; - is standard output", args: cobra.ExactArgs(1), run: exportJSON, flags: definitionFormat},
		{use: "import_definitions [FILE]", short: "Read definitions from a file or standard input; what is there already stays", args: cobra.MaximumNArgs(1), run: importOnce,
			flags: func(f *pflag.FlagSet) {
				definitionFormat(f)
				f.Bool("skip-if-unchanged", false, "not if they are those of the last import with this option, or at the start with definitions.skip_if_unchanged")
			}},
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
	from, raw, err := s.definitionsIn(args)
	if err != nil {
		return err
	}
	return s.importAll(ctx, from, raw)
}

// definitionFormat is RabbitMQ's option; there is one format.
func definitionFormat(f *pflag.FlagSet) { f.String("format", "json", "json") }

// onlyJSON refuses the other format.
func (s *session) onlyJSON() error {
	if f := s.flag("format"); f != "json" {
		return exitf(exitData, "format %q is not supported: definitions are JSON", f)
	}
	return nil
}

func exportJSON(ctx context.Context, s *session, args []string) error {
	if err := s.onlyJSON(); err != nil {
		return err
	}
	return exportDefinitions(ctx, s, args)
}

// importOnce is import_definitions, which may be told to pass over what it has
// imported before (RabbitMQ 4.0: the parameter with its hash).
func importOnce(ctx context.Context, s *session, args []string) error {
	if err := s.onlyJSON(); err != nil {
		return err
	}
	if !s.on("skip-if-unchanged") {
		return importDefinitions(ctx, s, args)
	}
	from, raw, err := s.definitionsIn(args)
	if err != nil {
		return err
	}
	hash := sha256.Sum256(raw)
	sum := base64.StdEncoding.EncodeToString(hash[:])
	path := apiPath("global-parameters", broker.ImportedHash)
	var last struct{ Value string }
	if err := s.api.get(ctx, path, &last); err != nil && !isStatus(err, http.StatusNotFound) {
		return err
	}
	if last.Value == sum {
		s.say("Definitions of %s are those of the last import: nothing is done", from)
		return nil
	}
	if err := s.importAll(ctx, from, raw); err != nil {
		return err
	}
	return s.api.put(ctx, path, map[string]string{"value": sum})
}

// definitionsIn reads the file that the arguments name, or standard input, and
// says for people which.
func (s *session) definitionsIn(args []string) (from string, raw []byte, err error) {
	file, from := "-", "standard input"
	if len(args) > 0 && args[0] != "-" {
		file, from = args[0], `"`+args[0]+`"`
	}
	if raw, err = s.readAll(file); err != nil {
		return from, nil, err
	}
	if !json.Valid(raw) {
		return from, nil, exitf(exitData, "the definitions in %s are not JSON; export_definitions writes such a file", from)
	}
	return from, raw, nil
}

func (s *session) importAll(ctx context.Context, from string, raw []byte) error {
	s.say("Importing definitions in JSON from %s ...", from)
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
