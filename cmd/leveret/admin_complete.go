package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// bashCompletion is a script for bash that completes commands of rabbitmqadmin, what
// they are for, and options.
func bashCompletion(flags *pflag.FlagSet) string {
	kinds := strings.Join(slices.Sorted(maps.Keys(adminKinds())), " ")
	after := [][2]string{
		{"declare", kinds}, {"delete", kinds}, {"close", "connection"}, {"purge", "queue"},
		{"list", strings.Join(slices.Sorted(maps.Keys(adminLists())), " ")}, {"show", "overview"},
		{"help", "subcommands"}, {"-f|--format", strings.Join(adminFormats, " ")},
	}
	words := "declare delete close purge list show help publish get export import"
	flags.VisitAll(func(f *pflag.Flag) { words += " --" + f.Name })
	var b strings.Builder
	fmt.Fprintf(&b, "_rabbitmqadmin() {\n    local word=\"${COMP_WORDS[COMP_CWORD]}\" words=\"%s\"\n", words)
	b.WriteString("    case \"${COMP_WORDS[COMP_CWORD-1]}\" in\n")
	for _, one := range after {
		fmt.Fprintf(&b, "    %s) words=\"%s\" ;;\n", one[0], one[1])
	}
	b.WriteString("    export|import|-c|--config) COMPREPLY=($(compgen -f -- \"$word\")); return ;;\n    esac\n" +
		"    COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -F _rabbitmqadmin rabbitmqadmin\n")
	return b.String()
}
