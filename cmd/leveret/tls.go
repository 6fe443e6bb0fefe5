package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// tlsCommand makes certificates for trying things out.
func tlsCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "tls", Short: "Make certificates for development", Args: noCommand, RunE: showHelp}
	cmd.AddCommand(tlsGenerateCommand())
	return cmd
}

func tlsGenerateCommand() *cobra.Command {
	var hosts, clients []string
	var days int
	var force bool
	cmd := &cobra.Command{
		Use:   "generate [FOLDER]",
		Short: "Make an authority, a server's certificate, and one for a client",
		Long: "generate makes an authority and certificates signed by it, for development and\n" +
			"tests: ca.pem, server.pem, and NAME.pem for each client, each with its key beside\n" +
			"it. FOLDER is tls unless given. Files that are there stay unless --force says so.",
		Args: cobra.MaximumNArgs(1),
	}
	cmd.Flags().StringSliceVar(&hosts, "hosts", defaultHosts(), "names and addresses that clients call the server by")
	cmd.Flags().StringSliceVar(&clients, "client", []string{"client"}, "common name of a client's certificate; may be given again")
	cmd.Flags().IntVar(&days, "days", 365, "how long the certificates are valid")
	cmd.Flags().BoolVar(&force, "force", false, "overwrite files")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		dir := "tls"
		if len(args) > 0 {
			dir = args[0]
		}
		g := generator{dir: dir, hosts: hosts, clients: clients, valid: time.Duration(days) * 24 * time.Hour, now: time.Now(), force: force}
		if err := g.check(days); err != nil {
			return exitf(exitUsage, "%v", err)
		}
		if err := g.run(); err != nil {
			return exitf(exitFailure, "%v", err)
		}
		_, err := fmt.Fprint(cmd.OutOrStdout(), g.instructions())
		return err
	}
	return cmd
}

// defaultHosts are this machine's names and addresses for itself.
func defaultHosts() []string {
	hosts := []string{"localhost", "127.0.0.1", "::1"}
	if name, err := os.Hostname(); err == nil && name != "localhost" {
		hosts = append(hosts, name)
	}
	return hosts
}

// instructions say what to do with the files.
func (g *generator) instructions() string {
	dir, err := filepath.Abs(g.dir)
	if err != nil {
		dir = g.dir
	}
	in := func(name string) string { return filepath.Join(dir, name) }
	var b strings.Builder
	fmt.Fprintf(&b, "# In the configuration file:\n")
	fmt.Fprintf(&b, "listeners.ssl.default = 5671\n")
	fmt.Fprintf(&b, "ssl_options.cacertfile = %s\nssl_options.certfile = %s\nssl_options.keyfile = %s\n", in("ca.pem"), in("server.pem"), in("server.key"))
	fmt.Fprintf(&b, "# To log clients in by their certificate, too:\n")
	fmt.Fprintf(&b, "ssl_options.verify = verify_peer\nssl_options.fail_if_no_peer_cert = false\n")
	fmt.Fprintf(&b, "auth_mechanisms.1 = PLAIN\nauth_mechanisms.2 = AMQPLAIN\nauth_mechanisms.3 = EXTERNAL\nssl_cert_login_from = common_name\n")
	fmt.Fprintf(&b, "# Clients trust %s", in("ca.pem"))
	for _, c := range g.clients {
		fmt.Fprintf(&b, ";\n# %s has %s and %s", c, in(c+".pem"), in(c+".key"))
	}
	fmt.Fprintf(&b, ".\n# Or without a file: leveret --tls-listen :5671 --tls-cert %s --tls-key %s\n", in("server.pem"), in("server.key"))
	return b.String()
}
