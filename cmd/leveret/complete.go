package main

import (
	"context"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// completionPatience is how long a shell waits for the names of the broker's
// things when somebody presses the tabulator.
const completionPatience = 800 * time.Millisecond

// A named thing is where the API lists things of a kind.
type namedThing struct {
	path    string
	inVHost bool
}

// namedThings are the kinds by the word that stands for one in a command's
// usage.
func namedThings() map[string]namedThing {
	return map[string]namedThing{
		"QUEUE":           {"queues", true},
		"EXCHANGE":        {"exchanges", true},
		"POLICY":          {"policies", true},
		"OPERATOR_POLICY": {"operator-policies", true},
		"VHOST":           {"vhosts", false},
		"USER":            {"users", false},
		"CONNECTION":      {"connections", false},
	}
}

// completer completes arguments by what the usage says they are; values are
// what arguments may be besides.
func completer(o *options, use string, values []string) cobra.CompletionFunc {
	words := strings.Fields(use)[1:]
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if values != nil {
			return beginning(typed, values), cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) >= len(words) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		word := strings.Trim(words[len(args)], "[].")
		if word == "FILE" || word == "PIDFILE" || word == "FROM" || word == "TO" {
			return nil, cobra.ShellCompDirectiveDefault
		}
		return namesOf(cmd.Context(), o, word, typed), cobra.ShellCompDirectiveNoFileComp
	}
}

// namesOf asks the broker for names. Without an answer there is nothing to
// complete: a shell has no place for errors.
func namesOf(ctx context.Context, o *options, word, typed string) []string {
	kind, known := namedThings()[word]
	if !known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionPatience)
	defer cancel()
	path := apiPath(kind.path)
	if kind.inVHost {
		path = apiPath(kind.path, o.vhost)
	}
	var list []object
	if newAPI(o, os.LookupEnv).get(ctx, path+"?columns=name", &list) != nil {
		return nil
	}
	var names []string
	for _, item := range list {
		if name := item.text("name"); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return beginning(typed, names)
}

// beginning are those of a list that begin with what is typed already.
func beginning(typed string, list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return !strings.HasPrefix(s, typed) })
}

// completeFlags completes the values of options.
func completeFlags(cmd *cobra.Command, o *options) {
	words := map[string]string{
		"vhost": "VHOST", "to-vhost": "VHOST", "user": "USER", "exchange": "EXCHANGE", "to-exchange": "EXCHANGE", "to-queue": "QUEUE", "from": "QUEUE",
	}
	fixed := map[string][]string{
		"formatter": formatters, "sort": topOrders(), "reason": {"rejected", "expired", "maxlen", "delivery_limit"},
		"default-queue-type": {"classic", "quorum", "stream"}, "apply-to": {"all", "queues", "classic_queues", "quorum_queues", "streams", "exchanges"},
	}
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		complete := cobra.NoFileCompletions
		if word, asks := words[f.Name]; asks {
			complete = func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				return namesOf(cmd.Context(), o, word, typed), cobra.ShellCompDirectiveNoFileComp
			}
		} else if list, known := fixed[f.Name]; known {
			complete = func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
				return beginning(typed, list), cobra.ShellCompDirectiveNoFileComp
			}
		} else if f.Name == "data-dir" {
			complete = func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
				return nil, cobra.ShellCompDirectiveFilterDirs
			}
		}
		_ = cmd.RegisterFlagCompletionFunc(f.Name, complete) // fails for a flag that has one already
	})
}
