package main

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
)

func TestAdminVersion(t *testing.T) {
	ask(t, "")
	for _, line := range []string{"rabbitmqadmin --version", "leveret admin --version", "rabbitmqadmin --version list queues", "rabbitmqadmin list queues --version"} {
		if code, out, errs := call(t, "", words(line)...); code != 0 || out != "rabbitmqadmin 4.0.5\n" {
			t.Errorf("%s: exit %d, %q, %s", line, code, out, errs)
		}
	}
}

// The script is run by bash, where there is one.
func TestAdminBashCompletion(t *testing.T) {
	ask(t, "")
	code, script, errs := call(t, "", "rabbitmqadmin", "--bash-completion")
	for _, want := range []string{"complete -F _rabbitmqadmin rabbitmqadmin\n", "show) words=\"overview\"", "--ssl-insecure"} {
		if code != 0 || !strings.Contains(script, want) {
			t.Errorf("exit %d, %s; %q is not in %s", code, errs, want, script)
		}
	}
	bash, err := exec.LookPath("bash")
	if err != nil {
		return
	}
	for typed, want := range map[string]string{"list que": "queues", "--bash": "--bash-completion", "close ": "connection", "-f raw": "raw_json", "declare queu": "queue"} {
		words := strings.Split("rabbitmqadmin "+typed, " ")
		line := fmt.Sprintf("%s\nCOMP_WORDS=('%s') COMP_CWORD=%d; _rabbitmqadmin; echo \"${COMPREPLY[*]}\"", script, strings.Join(words, "' '"), len(words)-1)
		out, err := exec.Command(bash, "-c", line).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%q is completed to %q, %v; want %q", typed, out, err, want)
		}
	}
}
