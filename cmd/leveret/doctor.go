package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/leveretmq/leveret/config"
)

// A finding is what one check of the doctor says.
type finding struct {
	Check  string   `json:"check"`
	Level  severity `json:"level"`
	Text   string   `json:"text"`
	Advice string   `json:"advice,omitempty"`
}

// A severity is how bad a finding is.
type severity string

const (
	fine    severity = "ok"
	warning severity = "warning"
	bad     severity = "error"
)

// The exit codes of the doctor: the worst of what it has found.
const (
	exitWarnings = 1
	exitErrors   = 2
)

// A patient is the machine that is looked at; tests have one of their own.
type patient struct {
	root     fs.FS // "/": proc and sys are read below it
	cfg      config.Config
	now      time.Time
	uid      int
	unit     bool                                      // it is the service that a unit starts
	files    func() (hard uint64, err error)           // of open files
	volume   func(path string) (volume, error)         // that a folder is on
	sync     func(dir string) (time.Duration, error)   // how long a small write takes to be safe
	clock    func() (synchronised bool, err error)     // by the system's own account
	taken    func(address string) bool                 // whether a listener could not be opened
	version  func(ctx context.Context) (string, error) // of the broker with this configuration, if it runs
	readFile func(name string) ([]byte, error)         // certificates
	stat     func(name string) (owner int, mode fs.FileMode, err error)
}

// A volume is a file system.
type volume struct {
	kind        string // as in "ext4"; "" is unknown
	free, total int64  // bytes
}

// checks are all checks in the order of the report.
func (p *patient) checks() []func(context.Context) []finding {
	return []func(context.Context) []finding{
		p.checkFiles, p.checkMemory, p.checkSwap, p.checkHugePages, p.checkClock,
		p.checkFolder, p.checkVolume, p.checkSync, p.checkPorts, p.checkCertificates, p.checkBroker,
	}
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the machine, the data folder and the configuration, and say what to do",
		Long: "doctor takes the flags and variables of serve, looks at what a broker with them would run on, and at the one that\n" +
			"runs. It changes nothing but for a small file in the data folder, which it removes. The exit code is 0 if all is\n" +
			"well, 1 if there are warnings, 2 if there are errors. Where the package is installed and nothing names a\n" +
			"folder, a configuration file or a broker in memory, root looks at its service.",
		Args: cobra.NoArgs,
	}
	addSettings(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		found := examine(cmd.Context(), givenFlags(cmd.Flags()))
		if err := writeFindings(cmd.OutOrStdout(), found, asJSON); err != nil {
			return exitf(exitErrors, "%v", err)
		}
		return diagnosis(found)
	}
	return cmd
}

// examine reads the configuration and makes all checks.
func examine(ctx context.Context, flags map[string]string) []finding {
	packaged := findService("/", flags, os.LookupEnv)
	_, cfg, err := config.Effective(flags, packaged.environment(os.LookupEnv))
	found := []finding{{Check: "configuration", Level: fine, Text: or(packaged == nil, "it is right", packaged.remark()+"; it is right")}}
	if err != nil {
		found = nil
		for line := range strings.SplitSeq(err.Error(), "\n") {
			found = append(found, finding{"configuration", bad, line, "correct it; `leveret config check` shows what is in force"})
		}
	}
	for _, remark := range config.Misspelt(append(os.Environ(), packaged.pairs()...)) {
		found = append(found, finding{"configuration", warning, remark, "correct the name, or unset the variable"})
	}
	p := newPatient(cfg)
	if packaged != nil {
		p.uid, p.unit = packaged.uid(p.uid), true
	}
	for _, check := range p.checks() {
		found = append(found, check(ctx)...)
	}
	return found
}

// newPatient is this machine.
func newPatient(cfg config.Config) *patient {
	return &patient{
		root: os.DirFS("/"), cfg: cfg, now: time.Now(), uid: os.Geteuid(),
		files: fileLimit, volume: volumeOf, sync: syncLatency, clock: clockSynchronised, taken: addressTaken,
		readFile: os.ReadFile, stat: ownerOf,
		version: func(ctx context.Context) (string, error) { return ownVersion(ctx, cfg, os.LookupEnv) },
	}
}

func writeFindings(out io.Writer, found []finding, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(found)
	}
	var b strings.Builder
	for _, f := range found {
		fmt.Fprintf(&b, "%-8s %s: %s\n", f.Level, f.Check, f.Text)
		if f.Advice != "" {
			fmt.Fprintf(&b, "         %s\n", f.Advice)
		}
	}
	_, err := io.WriteString(out, b.String())
	return err
}

// diagnosis is the exit code.
func diagnosis(found []finding) error {
	count := func(s severity) (n int) {
		for _, f := range found {
			if f.Level == s {
				n++
			}
		}
		return n
	}
	switch errors, warnings := count(bad), count(warning); {
	case errors > 0:
		return exitf(exitErrors, "%d errors and %d warnings: see above what to do", errors, warnings)
	case warnings > 0:
		return exitf(exitWarnings, "%d warnings: see above what to do", warnings)
	}
	return nil
}

// one is a single finding.
func one(check string, level severity, text, advice string) []finding {
	return []finding{{check, level, text, advice}}
}

// word is a file of one word or line below root, "" if it cannot be read.
func (p *patient) word(name string) string {
	b, err := fs.ReadFile(p.root, name)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// isOneOf says whether a name is in a list, whatever its case.
func isOneOf(name string, list ...string) bool { return slices.Contains(list, strings.ToLower(name)) }
