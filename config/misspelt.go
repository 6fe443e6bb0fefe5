package config

import (
	"fmt"
	"slices"
	"strings"
)

// maxMisspelt is how many letters of a variable's name may be wrong for it to be
// told of: orchestrators set many variables that begin like Leveret's or RabbitMQ's
// and mean something else, RABBITMQ_PORT for instance.
const maxMisspelt = 2

// ctlVariables are those that only the command line client reads.
func ctlVariables() []string {
	return []string{"LEVERET_URL", "LEVERET_USER", "LEVERET_PASSWORD", "LEVERET_MIGRATE_FROM", "LEVERET_MIGRATE_TO"}
}

// Misspelt has a remark for each variable of environ, a list as os.Environ makes
// it, that is none of Leveret's or RabbitMQ's and looks like one of them.
func Misspelt(environ []string) []string {
	known := knownVariables()
	var remarks []string
	for _, pair := range environ {
		name, _, _ := strings.Cut(pair, "=")
		if !strings.HasPrefix(name, "LEVERET_") && !strings.HasPrefix(name, "RABBITMQ_") || slices.Contains(known, name) {
			continue
		}
		if meant := closest(name, known); meant != "" {
			remarks = append(remarks, fmt.Sprintf("there is no variable %s, it has no effect; did you mean %s?", name, meant))
		}
	}
	slices.Sort(remarks)
	return remarks
}

// closest is the known name that differs least, "" if none is close.
func closest(name string, known []string) string {
	best, least := "", maxMisspelt+1
	for _, k := range known {
		if d := distance(name, k); d < least {
			best, least = k, d
		}
	}
	return best
}

// knownVariables are the names of all variables that mean something, to the broker
// or to the client.
func knownVariables() []string {
	names := slices.Concat(ctlVariables(), idleVariables(), []string{
		"LEVERET_CONFIG_FILE", "LEVERET_CONFIG_FILES",
		"RABBITMQ_CONFIG_FILE", "RABBITMQ_CONFIG_FILES", "RABBITMQ_ADVANCED_CONFIG_FILE",
		"RABBITMQ_NODE_PORT", "RABBITMQ_NODE_IP_ADDRESS", "RABBITMQ_MNESIA_DIR", "RABBITMQ_MNESIA_BASE",
		"RABBITMQ_LOGS", "RABBITMQ_LOG", "RABBITMQ_ENABLED_PLUGINS", "RABBITMQ_ENABLED_PLUGINS_FILE",
		"RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS",
	})
	for _, s := range allSettings() {
		names = append(names, s.Env())
	}
	for _, list := range [][]variable{rabbitVariables(), tlsVariables("RABBITMQ_SSL_", ""), tlsVariables("RABBITMQ_MANAGEMENT_SSL_", "")} {
		for _, v := range list {
			names = append(names, v.name)
		}
	}
	return names
}
