package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/schollz/progressbar/v3"

	"github.com/leveretmq/leveret/migrate"
)

// sayEvery is how often a migration that nobody watches on a terminal says how
// far it is.
const sayEvery = 10 * time.Second

// A migrateView shows people how a migration goes: a bar on a terminal, lines
// elsewhere.
type migrateView struct {
	out io.Writer

	// mu guards the fields below and the output.
	mu    sync.Mutex
	bar   *progressbar.ProgressBar // nil if this is no terminal, or it has not begun
	total int64
	moved int64
	said  time.Time
}

func newMigrateView(out io.Writer) *migrateView { return &migrateView{out: out, said: time.Now()} }

// event takes one event of the migration, from any goroutine.
func (v *migrateView) event(e migrate.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch {
	case e.Queues > 0:
		v.total = e.Messages
		v.line("%d messages in %d queues", e.Messages, e.Queues)
		if f, isFile := v.out.(*os.File); isFile && isTerminal(f) && e.Messages > 0 {
			v.bar = progressbar.NewOptions64(e.Messages, progressbar.OptionSetWriter(v.out), progressbar.OptionSetDescription("moving"),
				progressbar.OptionShowCount(), progressbar.OptionShowIts(), progressbar.OptionSetItsString("messages"),
				progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionFullWidth(), progressbar.OptionClearOnFinish())
		}
	case e.Moved > 0:
		v.moved += int64(e.Moved)
		v.progress()
	case e.Queue != nil:
		v.queue(e.Queue)
	case e.Text != "":
		v.line("%s", e.Text)
	}
}

// progress shows the number of messages moved.
func (v *migrateView) progress() {
	if v.bar != nil {
		_ = v.bar.Set64(min(v.moved, v.total)) // the source may have more by now
		return
	}
	if time.Since(v.said) >= sayEvery {
		v.said = time.Now()
		v.line("%d of %d messages moved", v.moved, v.total)
	}
}

// queue tells of a queue that is done, if it had anything.
func (v *migrateView) queue(q *migrate.Queue) {
	name := fmt.Sprintf("queue '%s' in vhost '%s'", q.Name, q.VHost)
	switch {
	case q.State == migrate.Moved, q.State == migrate.Copied && q.Moved > 0:
		if v.bar == nil {
			v.line("%s: %d messages %s", name, q.Moved, q.State)
		}
	case q.Reason != "" && q.State != migrate.Empty:
		v.line("%s: %s: %s", name, q.State, q.Reason)
	}
}

// line prints a line, above the bar if there is one.
func (v *migrateView) line(format string, args ...any) {
	if v.bar != nil {
		_ = v.bar.Clear() // it is drawn again with the next message
	}
	_, _ = fmt.Fprintf(v.out, format+"\n", args...) // there is nobody else to tell
}

// end takes the bar away.
func (v *migrateView) end() {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.bar != nil {
		_ = v.bar.Clear()
		v.bar = nil
	}
}

// writeMigrateReport prints what became of everything.
func writeMigrateReport(out io.Writer, r *migrate.Report, asJSON bool) error {
	if asJSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return e.Encode(r)
	}
	var b strings.Builder
	if len(r.Definitions) > 0 {
		writeDefinitionsTable(&b, r)
	}
	if len(r.Queues) > 0 {
		writeQueuesTable(&b, r)
	}
	if r.DryRun {
		b.WriteString("This was a dry run: nothing has changed.\n")
	}
	_, err := io.WriteString(out, b.String())
	return err
}

func writeDefinitionsTable(b *strings.Builder, r *migrate.Report) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	row := func(cells ...any) { _, _ = fmt.Fprintln(w, tabbed(cells)) } // Flush has the error
	row("definitions", "source", "refused")
	for _, s := range r.Definitions {
		row(s.Name, s.Source, s.Refused)
	}
	_ = w.Flush() // a Builder takes everything
	for _, f := range r.Refused {
		fmt.Fprintf(b, "refused: %s %s: %s\n", strings.TrimSuffix(f.Section, "s"), f.Item, f.Reason)
	}
	b.WriteByte('\n')
}

func writeQueuesTable(b *strings.Builder, r *migrate.Report) {
	w := tabwriter.NewWriter(b, 0, 8, 2, ' ', 0)
	row := func(cells ...any) { _, _ = fmt.Fprintln(w, tabbed(cells)) } // Flush has the error
	row("vhost", "queue", "type", "source before", "moved", "source after", "target before", "target after", "state")
	empty := 0
	for _, q := range r.Queues {
		if q.State == migrate.Empty || q.State == migrate.Planned && q.Before == 0 {
			empty++
			continue
		}
		row(q.VHost, q.Name, q.Type, q.Before, q.Moved, q.After, q.TargetBefore, q.TargetAfter, q.State)
	}
	_ = w.Flush() // a Builder takes everything
	for _, q := range r.Queues {
		if q.Reason != "" && q.State != migrate.Empty {
			fmt.Fprintf(b, "%s: queue '%s' in vhost '%s': %s\n", q.State, q.Name, q.VHost, q.Reason)
		}
	}
	fmt.Fprintf(b, "%d messages moved, %d queues, %d of them empty.\n", r.Moved, len(r.Queues), empty)
}

// tabbed puts tabs between the cells of a row.
func tabbed(cells []any) string {
	texts := make([]string, len(cells))
	for i, c := range cells {
		texts[i] = fmt.Sprint(c)
	}
	return strings.Join(texts, "\t")
}
