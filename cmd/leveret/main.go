// Command leveret is the broker. Without a command it serves.
package main

import (
	"fmt"
	"os"
)

func main() {
	if err := rootCommand().Execute(); err != nil {
		fmt.Fprintln(os.Stderr, "leveret:", err)
		os.Exit(1)
	}
}
