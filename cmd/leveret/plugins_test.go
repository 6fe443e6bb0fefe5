package main

import (
	"os"
	"slices"
	"strings"
	"testing"
)

// Whatever RabbitMQ 4.0.5 lists can be enabled and is listed here; so can the parts
// of its plug-ins that it does not list.
func TestPluginsOfRabbitMQ(t *testing.T) {
	raw, err := os.ReadFile("testdata/plugins-4.0.5")
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Fields(string(raw))
	code, out, errs := call(t, "", append([]string{"rabbitmq-plugins", "enable", "--offline"}, names...)...)
	if code != 0 || !strings.Contains(errs, "rabbitmq_shovel_prometheus is not built in") || !strings.Contains(out, "rabbitmq_management is built in") {
		t.Errorf("enable all: exit %d, %s%s", code, out, errs)
	}
	_, out, _ = call(t, "", "rabbitmq-plugins", "list", "-m", "-s")
	listed := strings.Fields(out)
	for _, name := range names {
		if !slices.Contains(listed, name) {
			t.Errorf("%s is not in the list", name)
		}
	}
	for _, name := range []string{"amqp_client", "oauth2_client", "rabbitmq_aws", "rabbitmq_stream_common"} {
		if code, _, errs := call(t, "", "rabbitmq-plugins", "enable", name); code != 0 || !strings.Contains(errs, name+" is not built in") || slices.Contains(listed, name) {
			t.Errorf("%s: exit %d, %s; is it listed: %v", name, code, errs, slices.Contains(listed, name))
		}
	}
	if code, _, errs := call(t, "", "rabbitmq-plugins", "enable", "rabbitmq_nonsense"); code != exitSoftware || !strings.Contains(errs, "{:plugins_not_found, [:rabbitmq_nonsense]}") {
		t.Errorf("one that is not there: exit %d, %s", code, errs)
	}
}
