package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// topRows is how many queues and connections a snapshot has at most.
const topRows = 100

func topCommands() []command {
	return []command{
		{use: "top", short: "Show rates, the busiest queues and connections, live on a terminal; q ends it", args: cobra.NoArgs, run: top,
			flags: func(f *pflag.FlagSet) {
				f.Duration("interval", 2*time.Second, "`time` between two looks")
				f.String("sort", "messages", "`order` of the queues: "+strings.Join(topOrders(), ", "))
				f.Bool("once", false, "print one snapshot and end; so it is without a terminal, too")
			}},
	}
}

// topOrders are what queues can be sorted by, in the order of the key s.
func topOrders() []string {
	return []string{"messages", "publish", "deliver", "unacked", "consumers", "name"}
}

// orderPath is what the API calls an order.
func orderPath(order string) string {
	switch order {
	case "publish":
		return "message_stats.publish_details.rate"
	case "deliver":
		return "message_stats.deliver_get_details.rate"
	case "unacked":
		return "messages_unacknowledged"
	}
	return order
}

// A snapshot is what top shows at one moment.
type snapshot struct {
	Node        object   `json:"node"`
	Overview    object   `json:"overview"`
	Queues      []object `json:"queues"`
	Connections []object `json:"connections"`
	QueueCount  int      `json:"queue_count"`
}

func top(ctx context.Context, s *session, _ []string) error {
	order := s.flag("sort")
	if !slices.Contains(topOrders(), order) {
		return exitf(exitUsage, "queues cannot be sorted by %q; take one of %s", order, strings.Join(topOrders(), ", "))
	}
	in, inIsFile := s.in.(*os.File)
	out, outIsFile := s.out.(*os.File)
	live := inIsFile && outIsFile && term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd()))
	if !live || s.on("once") || s.opts.formatter == "json" {
		return s.topOnce(ctx, order)
	}
	interval, _ := s.flags.GetDuration("interval") // it is declared above
	return s.topLive(ctx, in, out, max(interval, 100*time.Millisecond), order)
}

func (s *session) topOnce(ctx context.Context, order string) error {
	snap, err := s.snapshot(ctx, order)
	if err != nil {
		return err
	}
	if s.opts.formatter == "json" {
		return s.document(snap)
	}
	v := &topView{order: order, snap: snap}
	for _, line := range v.lines(120, 0) {
		s.printf("%s\n", strings.TrimRight(line.text, " "))
	}
	return nil
}

// A topPage is the first page of a listing.
type topPage struct {
	Items []object `json:"items"`
	Total int      `json:"filtered_count"`
}

// snapshot asks for all that top shows.
func (s *session) snapshot(ctx context.Context, order string) (*snapshot, error) {
	n, err := s.node(ctx)
	if err != nil {
		return nil, err
	}
	snap := &snapshot{Node: n.object}
	if err := s.api.get(ctx, apiPath("overview"), &snap.Overview); err != nil {
		return nil, err
	}
	queues := apiPath("queues")
	if s.flags.Changed("vhost") {
		queues = apiPath("queues", s.opts.vhost)
	}
	var page topPage
	err = s.api.get(ctx, fmt.Sprintf("%s?page=1&page_size=%d&sort=%s&sort_reverse=%t", queues, topRows, orderPath(order), order != "name"), &page)
	if err != nil {
		return nil, orMissing(err, exitData, "Virtual host '%s' does not exist", s.opts.vhost)
	}
	snap.Queues, snap.QueueCount = page.Items, page.Total
	var connections topPage // decoding into page would mix its maps with the queues'
	err = s.api.get(ctx, fmt.Sprintf("%s?page=1&page_size=%d&sort=recv_oct_details.rate&sort_reverse=true", apiPath("connections"), topRows), &connections)
	snap.Connections = connections.Items
	return snap, err
}

// topLive draws until q or a signal. The goroutine that reads keys waits for
// the terminal: it ends with the process.
func (s *session) topLive(ctx context.Context, in, out *os.File, interval time.Duration, order string) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return exitf(exitSoftware, "cannot set the terminal up: %v; --once needs none", err)
	}
	defer term.Restore(int(in.Fd()), before)
	_, _ = io.WriteString(out, "\x1b[?1049h\x1b[?25l")             // another screen, no cursor
	defer func() { io.WriteString(out, "\x1b[?25h\x1b[?1049l") }() // back to the first
	keys := make(chan byte)
	go readKeys(in, keys)
	resized, forget := resizes()
	defer forget()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	v := &topView{order: order, colours: coloured(out), out: out, size: func() (int, int) {
		w, h, err := term.GetSize(int(out.Fd()))
		if err != nil {
			return 80, 24
		}
		return w, h
	}}
	return v.run(ctx, func(order string) (*snapshot, error) { return s.snapshot(ctx, order) }, keys, resized, tick.C)
}

func readKeys(in io.Reader, keys chan<- byte) {
	var b [1]byte
	for {
		if _, err := in.Read(b[:]); err != nil {
			return
		}
		keys <- b[0]
	}
}

// A topView is the screen of top. One goroutine uses it.
type topView struct {
	order   string
	paused  bool
	colours bool
	snap    *snapshot // the last one
	err     error     // why there is no newer one
	out     io.Writer
	size    func() (width, height int) // in characters
}

// run draws at every tick, key and change of size until q, Ctrl-C or the end of
// ctx. A broker that does not answer is shown, and asked again.
func (v *topView) run(ctx context.Context, ask func(order string) (*snapshot, error), keys <-chan byte, resized <-chan os.Signal, tick <-chan time.Time) error {
	for fresh := true; ; {
		if fresh && !v.paused {
			snap, err := ask(v.order)
			if v.err = err; err == nil {
				v.snap = snap
			}
		}
		if err := v.draw(); err != nil {
			return err
		}
		fresh = true
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		case <-resized:
			fresh = false
		case k := <-keys:
			if k == 'q' || k == 'Q' || k == 3 { // raw terminals send Ctrl-C as a byte
				return nil
			}
			v.key(k)
		}
	}
}

// key acts on a key: s is the next order, a space stops the picture.
func (v *topView) key(k byte) {
	switch k {
	case 's':
		orders := topOrders()
		for i, o := range orders {
			if o == v.order {
				v.order = orders[(i+1)%len(orders)]
				break
			}
		}
	case ' ':
		v.paused = !v.paused
	}
}

// A topLine is one line of the screen.
type topLine struct {
	text   string
	accent func(string) string // nil is none
}

func (v *topView) draw() error {
	width, height := v.size()
	var b strings.Builder
	b.WriteString("\x1b[H")
	lines := v.lines(width, height)
	for i, l := range lines {
		text := cut(l.text, width)
		if v.colours && l.accent != nil {
			text = l.accent(text)
		}
		b.WriteString(text + "\x1b[K")
		if i < len(lines)-1 {
			b.WriteString("\r\n")
		}
	}
	b.WriteString("\x1b[J")
	_, err := io.WriteString(v.out, b.String())
	return err
}

// cut takes the first n characters.
func cut(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}

// lines is the screen; it has as many lines as fit, all for a height of 0.
func (v *topView) lines(width, height int) []topLine {
	if v.snap == nil {
		return []topLine{{fmt.Sprintf("no answer: %v", explained(v.err)), red}, {"q ends", nil}}
	}
	list := v.head()
	queues, connections := v.queueLines(width), v.connectionLines(width)
	if height > 0 {
		room := max(0, height-len(list)-3)       // two titles, and a line in between
		least := min(len(connections)-1, room/3) // connections get a third, if they need it
		queues = queues[:min(len(queues), max(1, room-least+1))]
		connections = connections[:min(len(connections), max(1, height-len(list)-len(queues)-1))]
	}
	list = append(append(append(list, queues...), topLine{}), connections...)
	if height > 0 && len(list) > height {
		list = list[:max(0, height)]
	}
	return list
}

// rateOf is how many times a second something of message_stats happens.
func rateOf(o object, name string) string {
	f, _ := strconv.ParseFloat(o.text("message_stats."+name+"_details.rate"), 64) // 0 if it is left out
	if f >= 1000 {
		return fmt.Sprintf("%.0f", f)
	}
	return fmt.Sprintf("%.1f", f)
}

// head is the broker as a whole.
func (v *topView) head() []topLine {
	o, n := v.snap.Overview, node{v.snap.Node}
	state := ""
	if v.paused {
		state = "  paused"
	}
	if v.err != nil {
		state += "  no answer: " + strings.ReplaceAll(explained(v.err).Error(), "\n", " ")
	}
	list := []topLine{
		{fmt.Sprintf("%s  %s %s  up %s%s", n.text("name"), o.text("product_name"), o.text("product_version"),
			(time.Duration(n.number("uptime")) * time.Millisecond).Round(time.Second), state), bold},
		{fmt.Sprintf("messages  ready %s  unacked %s  total %s", o.text("queue_totals.messages_ready"),
			o.text("queue_totals.messages_unacknowledged"), o.text("queue_totals.messages")), nil},
		{fmt.Sprintf("rates/s   publish %s  confirm %s  deliver %s  ack %s  redeliver %s", rateOf(o, "publish"), rateOf(o, "confirm"),
			rateOf(o, "deliver_get"), rateOf(o, "ack"), rateOf(o, "redeliver")), nil},
		{fmt.Sprintf("objects   connections %s  channels %s  consumers %s  exchanges %s  queues %s", o.text("object_totals.connections"), o.text("object_totals.channels"),
			o.text("object_totals.consumers"), o.text("object_totals.exchanges"), o.text("object_totals.queues")), nil},
		{fmt.Sprintf("memory    %s of %s   disk free %s, stops below %s", megabytes(n.number("mem_used")), megabytes(n.number("mem_limit")),
			megabytes(n.number("disk_free")), megabytes(n.number("disk_free_limit"))), nil},
	}
	if alarms := n.alarms(); len(alarms) > 0 {
		list = append(list, topLine{"ALARM     " + strings.Join(alarms, ", ") + ": publishers are blocked", red})
	}
	return append(list, topLine{})
}

// queueLines are the queues; name and vhost have what the figures leave.
func (v *topView) queueLines(width int) []topLine {
	room := max(12, width-65)
	row := "%-" + strconv.Itoa(room) + "s %9s %9s %9s %9s %9s %5s %-8s"
	title := fmt.Sprintf(row, cut(fmt.Sprintf("QUEUE (%d, by %s)", v.snap.QueueCount, v.order), room), "READY", "UNACKED", "PUB/S", "DELIV/S", "ACK/S", "CONS", "STATE")
	list := []topLine{{title, bold}}
	for _, q := range v.snap.Queues {
		name := q.text("name")
		if vhost := q.text("vhost"); vhost != "/" {
			name = vhost + " " + name
		}
		list = append(list, topLine{fmt.Sprintf(row, cut(tabCell(name), room), q.text("messages_ready"), q.text("messages_unacknowledged"),
			rateOf(q, "publish"), rateOf(q, "deliver_get"), rateOf(q, "ack"),
			q.text("consumers"), cut(q.text("state"), 8)), nil})
	}
	return list
}

func (v *topView) connectionLines(width int) []topLine {
	room := max(12, width-58)
	row := "%-" + strconv.Itoa(room) + "s %-14s %-9s %5s %12s %12s"
	list := []topLine{{fmt.Sprintf(row, "CONNECTION", "USER", "STATE", "CHANS", "RECEIVED/S", "SENT/S"), bold}}
	for _, c := range v.snap.Connections {
		name := c.text("name")
		if own := c.text("user_provided_name"); own != "" {
			name = own + "  " + name
		}
		list = append(list, topLine{fmt.Sprintf(row, cut(tabCell(name), room), cut(tabCell(c.text("user")), 14), cut(c.text("state"), 9), c.text("channels"),
			bytesRate(c, "recv_oct"), bytesRate(c, "send_oct")), nil})
	}
	return list
}

// bytesRate is a rate in bytes, as people read it.
func bytesRate(o object, name string) string {
	f, _ := strconv.ParseFloat(o.text(name+"_details.rate"), 64) // 0 if it is left out
	for _, unit := range []string{"B", "kB", "MB"} {
		if f < 1000 {
			return fmt.Sprintf("%.1f %s", f, unit)
		}
		f /= 1000
	}
	return fmt.Sprintf("%.1f GB", f)
}
