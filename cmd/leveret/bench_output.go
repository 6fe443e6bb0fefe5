package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/leveretmq/leveret/bench"
)

// A benchOutput writes what runs of the load tool say, to people and to files.
type benchOutput struct {
	o       *benchOptions
	people  io.Writer // summaries
	errs    io.Writer // progress
	json    io.WriteCloser
	csv     io.WriteCloser
	runs    int  // in all
	run     int  // that have begun
	rewrite bool // progress is one line that changes
	pending bool // such a line stands on the terminal
}

// newBenchOutput opens the files that are written to, so that a wrong name is
// found before the load. People read the standard output, unless a file is.
func newBenchOutput(o *benchOptions, out, errs io.Writer, runs int) (*benchOutput, error) {
	b := &benchOutput{o: o, people: out, errs: errs, runs: runs, rewrite: isTerminalWriter(errs)}
	if o.json == "-" || o.csv == "-" {
		b.people = errs
	}
	var err error
	if b.json, err = create(o.json, out); err != nil {
		return nil, err
	}
	if b.csv, err = create(o.csv, out); err != nil {
		return nil, err
	}
	for _, file := range []string{o.html, o.markdown} {
		if err := checkWritable(file); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// create opens a file to write, the standard output for -, nil for none. What the
// file holds stays until something is written to it.
func create(name string, out io.Writer) (io.WriteCloser, error) {
	switch name {
	case "":
		return nil, nil
	case "-":
		return keepOpen{out}, nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return nil, err
	}
	return &lateFile{f: f}, nil
}

// A lateFile is a file that the first write empties.
type lateFile struct {
	f       *os.File
	written bool
}

func (l *lateFile) Write(b []byte) (int, error) {
	if !l.written {
		if err := truncate(l.f); err != nil {
			return 0, err
		}
		l.written = true
	}
	return l.f.Write(b)
}

func (l *lateFile) Close() error { return l.f.Close() }

// truncate empties a file; pipes and devices hold nothing.
func truncate(f *os.File) error {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	return f.Truncate(0)
}

// keepOpen is a writer that others use after it is closed.
type keepOpen struct{ io.Writer }

func (keepOpen) Close() error { return nil }

// checkWritable finds out whether a file can be written later.
func checkWritable(name string) error {
	if name == "" {
		return nil
	}
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return err
	}
	return f.Close()
}

func isTerminalWriter(w io.Writer) bool {
	f, isFile := w.(*os.File)
	return isFile && isTerminal(f)
}

// progress shows a sample: on a terminal in place of the one before.
func (b *benchOutput) progress(s bench.Sample) {
	if !b.rewrite {
		_, _ = fmt.Fprintln(b.errs, s.Line()) // progress that cannot be shown is no reason to stop
		return
	}
	_, _ = fmt.Fprintf(b.errs, "\r\x1b[K%s", s.Line())
	b.pending = true
}

// clear removes the line of progress.
func (b *benchOutput) clear() {
	if b.pending {
		_, _ = fmt.Fprint(b.errs, "\r\x1b[K")
		b.pending = false
	}
}

// before announces one of many runs.
func (b *benchOutput) before(broker *bench.Broker, sc *bench.Scenario, round int) {
	b.run++
	if !b.o.quiet {
		b.clear()
		_, _ = fmt.Fprintf(b.errs, "[%d/%d] %s on %s, round %d: %s\n", b.run, b.runs, sc.Name, broker, round, sc.Description)
	}
}

// after writes a result: whole if it is the only one, else a line.
func (b *benchOutput) after(r *bench.Result) error {
	b.clear()
	if b.json != nil {
		if err := json.NewEncoder(b.json).Encode(r); err != nil {
			return err
		}
	}
	if b.runs == 1 {
		return r.WriteSummary(b.people)
	}
	_, err := fmt.Fprintln(b.people, r.Short())
	return err
}

// finish writes what needs all results: files only if a run took place.
func (b *benchOutput) finish(results []*bench.Result) error {
	if b.runs > 1 {
		if _, err := fmt.Fprintln(b.people); err != nil {
			return err
		}
		if err := bench.Compare(results).WriteText(b.people); err != nil {
			return err
		}
	}
	if slices.ContainsFunc(results, func(r *bench.Result) bool { return !r.NotRun }) {
		if err := b.writeReports(results); err != nil {
			return err
		}
	}
	for _, f := range []io.Closer{b.json, b.csv} {
		if f == nil {
			continue
		}
		if err := f.Close(); err != nil {
			return err
		}
	}
	return nil
}

// writeReports writes the files that are of all results.
func (b *benchOutput) writeReports(results []*bench.Result) error {
	if b.csv != nil {
		if err := bench.WriteCSV(b.csv, results); err != nil {
			return err
		}
	}
	if err := writeReport(b.o.html, func(w io.Writer) error { return bench.WriteHTML(w, results) }); err != nil {
		return err
	}
	return writeReport(b.o.markdown, bench.Compare(results).WriteMarkdown)
}

// writeReport writes a file, unless it has no name.
func writeReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	return f.Close()
}
