package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	amqp "github.com/rabbitmq/amqp091-go"
	"github.com/spf13/cobra"

	"github.com/leveretmq/leveret/migrate"
)

// exitIncomplete is the code of a migration that left something behind.
const exitIncomplete = 1

// migrateFlags are the options of `leveret migrate`.
type migrateFlags struct {
	management, to, toManagement, caCert   string
	definitionsOnly, noDefinitions, asJSON bool
	opts                                   migrate.Options
}

const migrateHelp = `Moves what a running RabbitMQ (or Leveret) has to another broker, by default the one on this machine.

First the definitions: virtual hosts, users with their passwords, permissions, policies, parameters, exchanges,
queues and bindings. What the target does not take is reported. Then the messages: each is published to the
queue of the same name at the target, and acknowledged at the source once the target has confirmed it. Order,
properties, headers and body stay as they are. Stop the consumers of the source first: queues that have some are
left alone and reported. Streams are copied.

Ctrl-C ends in order. Run it again to go on: nothing is lost whatever ends it, and only a kill or a lost connection
can leave messages twice at the target, at most as many as were under way.`

// migrateCommand is `leveret migrate`.
func migrateCommand() *cobra.Command {
	var f migrateFlags
	cmd := &cobra.Command{
		Use:   "migrate [amqp://user:password@source]",
		Short: "Move definitions and messages of a running RabbitMQ to this broker",
		Long:  migrateHelp,
		Example: "  leveret migrate amqp://admin:secret@old-rabbit --dry-run\n" +
			"  leveret migrate amqp://admin:secret@old-rabbit\n" +
			"  leveret migrate amqp://admin:secret@old-rabbit --to amqp://admin:secret@new",
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return runMigrate(cmd, args, &f) },
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.management, "management", "", "`address` of the source's HTTP API (default http://SOURCE:15672, the login of the URI)")
	flags.StringVar(&f.to, "to", "", "`URI` of the target (default amqp://guest:guest@127.0.0.1:5672) [LEVERET_MIGRATE_TO]")
	flags.StringVar(&f.toManagement, "to-management", "", "`address` of the target's HTTP API, or local: the broker on this machine (default http://TARGET:15672, the login of its URI; local for a target here)")
	flags.StringVar(&f.caCert, "cacert", "", "`file` of certificates that the HTTP APIs' may be signed by; for AMQP it is cacertfile= in the URI")
	flags.StringArrayVar(&f.opts.VHosts, "vhost", nil, "only this virtual `host`; may be repeated")
	flags.StringArrayVar(&f.opts.Only, "only", nil, "only queues whose name fits this `pattern`, as in 'orders.*'; may be repeated")
	flags.StringArrayVar(&f.opts.Skip, "skip", nil, "not the queues whose name fits this `pattern`; may be repeated")
	flags.BoolVar(&f.definitionsOnly, "definitions-only", false, "no messages")
	flags.BoolVar(&f.definitionsOnly, "no-messages", false, "the same as --definitions-only")
	flags.BoolVar(&f.noDefinitions, "no-definitions", false, "messages only; the target must have the queues")
	flags.BoolVar(&f.opts.DryRun, "dry-run", false, "change nothing, say what would be moved")
	flags.IntVar(&f.opts.Parallel, "parallel", 4, "`number` of queues at a time")
	flags.IntVar(&f.opts.Prefetch, "prefetch", 0, "`number` of messages of a queue that are under way at most (default by their size, up to 500)")
	flags.BoolVar(&f.asJSON, "json", false, "print the report as JSON")
	return cmd
}

func runMigrate(cmd *cobra.Command, args []string, f *migrateFlags) error {
	from, to, err := f.endpoints(args, os.Getenv)
	if err != nil {
		return err
	}
	f.opts.NoMessages, f.opts.NoDefinitions = f.definitionsOnly, f.noDefinitions
	if f.definitionsOnly && f.noDefinitions {
		return exitf(exitUsage, "--definitions-only and --no-definitions leave nothing to move; give one of them")
	}
	ctx, stop := interruptible(cmd.Context())
	defer stop()
	show := newMigrateView(cmd.ErrOrStderr())
	f.opts.Watch = show.event
	report, err := migrate.Run(ctx, from, to, f.opts)
	show.end()
	if err != nil {
		return exitf(exitUnavailable, "%v", err)
	}
	if err := writeMigrateReport(cmd.OutOrStdout(), report, f.asJSON); err != nil {
		return exitf(exitSoftware, "%v", err)
	}
	switch {
	case report.Interrupted:
		return exitf(exitTimeout, "interrupted; the rest is still at the source: run it again to go on")
	case !report.Complete():
		return exitf(exitIncomplete, "not everything is at the target: see the reasons above, and run it again when they are gone")
	}
	return nil
}

// interruptible is a context that the first signal ends. A second one ends the
// program, as nothing is lost by it.
func interruptible(parent context.Context) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() { // ends with the command
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-signals:
				if n > 0 {
					os.Exit(exitTimeout)
				}
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}

// endpoints reads the addresses of both brokers.
func (f *migrateFlags) endpoints(args []string, env func(string) string) (from, to migrate.Endpoint, err error) {
	source := env("LEVERET_MIGRATE_FROM")
	if len(args) > 0 {
		source = args[0]
	}
	if source == "" {
		return from, to, exitf(exitUsage, "which broker to move from? give its URI, as in amqp://user:password@host, or set LEVERET_MIGRATE_FROM, which keeps it out of sight")
	}
	client, err := f.httpClient()
	if err != nil {
		return from, to, err
	}
	if from, err = endpoint(source, f.management, client); err != nil {
		return from, to, err
	}
	target := f.to
	if target == "" {
		target = env("LEVERET_MIGRATE_TO")
	}
	if target == "" {
		target = "amqp://guest:guest@127.0.0.1:5672"
	}
	if f.toManagement != "local" && (f.toManagement != "" || !onThisMachine(target)) {
		if to, err = endpoint(target, f.toManagement, client); err != nil {
			return from, to, err
		}
		return from, to, differ(from, to)
	}
	if to, err = endpoint(target, "", client); err != nil {
		return from, to, err
	}
	own := newAPI(&options{}, os.LookupEnv)
	to.API = &migrate.API{Base: own.base, User: own.user, Password: own.password, Client: own.http}
	if own.local { // whatever its address is
		return from, to, nil
	}
	return from, to, differ(from, to)
}

// differ says if both brokers have one HTTP API: the definitions of the source would be
// imported into itself.
func differ(from, to migrate.Endpoint) error {
	if !sameAPI(from.API.Base, to.API.Base) {
		return nil
	}
	return exitf(exitUsage, "source and target have the same HTTP API, %s: name that of the target with --to-management, or that of the source with --management", to.API.Base)
}

// sameAPI says whether two addresses are of one HTTP API. This machine has several
// names.
func sameAPI(a, b string) bool {
	var bases [2]string
	for i, base := range []string{a, b} {
		u, err := url.Parse(base)
		if err != nil {
			return false // it is told by the one who asks there
		}
		host := strings.ToLower(u.Hostname())
		if ip := net.ParseIP(host); host == "localhost" || ip != nil && ip.IsLoopback() {
			host = "127.0.0.1"
		}
		u.Host = net.JoinHostPort(host, u.Port())
		bases[i] = u.String()
	}
	return bases[0] == bases[1]
}

// onThisMachine says whether an AMQP URI names this machine, by its name or one of its
// addresses. The broker here is asked over its socket, which needs no login; another's
// HTTP API must be its own.
func onThisMachine(uri string) bool {
	a, err := amqp.ParseURI(uri)
	if err != nil {
		return true // what is wrong is told next
	}
	if ip := net.ParseIP(a.Host); ip != nil {
		addresses, _ := net.InterfaceAddrs() // without them it is another machine's
		return ip.IsLoopback() || slices.ContainsFunc(addresses, func(a net.Addr) bool {
			own, isIP := a.(*net.IPNet)
			return isIP && own.IP.Equal(ip)
		})
	}
	own, err := os.Hostname()
	return a.Host == "localhost" || err == nil && strings.EqualFold(a.Host, own)
}

// endpoint is a broker at an AMQP URI and an HTTP address; "" is the usual one
// on the same host.
func endpoint(uri, management string, client *http.Client) (migrate.Endpoint, error) {
	a, err := amqp.ParseURI(uri)
	if err != nil {
		// The error would show the URI, with the password.
		return migrate.Endpoint{}, exitf(exitUsage, "the URI of a broker is wrong; it looks like amqp://user:password@host:5672, with special characters of the password as %%40")
	}
	if management == "" {
		management = "http://" + net.JoinHostPort(a.Host, "15672")
		if a.Scheme == "amqps" {
			management = "https://" + net.JoinHostPort(a.Host, strconv.Itoa(15671))
		}
	}
	u, err := url.Parse(baseURL(management))
	if err != nil || u.Host == "" {
		return migrate.Endpoint{}, exitf(exitUsage, "the address of the HTTP API is wrong; it looks like http://host:15672")
	}
	api := &migrate.API{User: a.Username, Password: a.Password, Client: client}
	if u.User != nil {
		api.User = u.User.Username()
		api.Password, _ = u.User.Password()
		u.User = nil
	}
	api.Base = u.String()
	return migrate.Endpoint{AMQP: uri, API: api}, nil
}

func (f *migrateFlags) httpClient() (*http.Client, error) {
	if f.caCert == "" {
		return &http.Client{}, nil
	}
	pem, err := os.ReadFile(f.caCert)
	if err != nil {
		return nil, exitf(exitData, "cannot read the certificates: %v", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, exitf(exitData, "%s has no certificate in PEM form", f.caCert)
	}
	transport, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return nil, errors.New("the HTTP client is another one than Go's")
	}
	transport = transport.Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: pool}
	return &http.Client{Transport: transport}, nil
}
