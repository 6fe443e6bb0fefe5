package broker

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/leveretmq/leveret/config"
)

// brokerProcess says to the test's own program, in its environment, to be a broker
// with this data directory.
const brokerProcess = "LEVERET_TEST_BROKER_DATA"

// beBroker is the other process: it runs until it is killed.
func beBroker(t *testing.T, dir string) {
	cfg := config.Default()
	cfg.Listen, cfg.ManagementListen, cfg.DataDir = "127.0.0.1:0", "127.0.0.1:0", dir
	b := New(cfg, nil)
	if _, err := b.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Println("api " + b.apiListener.Addr().String())
	io.Copy(io.Discard, os.Stdin) // ends with the process that started this one
}

// A killable is a broker in a process of its own.
type killable struct {
	t   *testing.T
	cmd *exec.Cmd
	api string
}

func startKillable(t *testing.T, dir string) *killable {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), brokerProcess+"="+dir)
	if _, err := cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &killable{t: t, cmd: cmd}
	t.Cleanup(k.kill)
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if addr, ok := strings.CutPrefix(lines.Text(), "api "); ok {
			k.api = "http://" + addr + "/api"
			return k
		}
	}
	t.Fatal("the broker's process has ended")
	return nil
}

func (k *killable) kill() {
	k.cmd.Process.Kill() // it has ended already the second time
	k.cmd.Wait()
}

func (k *killable) call(method, path, body string) *http.Response {
	k.t.Helper()
	req, err := http.NewRequestWithContext(k.t.Context(), method, k.api+path, strings.NewReader(body))
	if err != nil {
		k.t.Fatal(err)
	}
	req.SetBasicAuth("guest", "guest")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		k.t.Fatal(err)
	}
	if resp.StatusCode >= 300 {
		b, _ := io.ReadAll(resp.Body)
		k.t.Fatalf("%s %s = %s %s", method, path, resp.Status, b)
	}
	return resp
}

// payloads counts the messages of a queue by payload.
func (k *killable) payloads(queue string) map[string]int {
	k.t.Helper()
	resp := k.call("POST", "/queues/%2F/"+queue+"/peek", `{"count":10000}`)
	defer resp.Body.Close()
	var got struct{ Messages []struct{ Payload string } }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		k.t.Fatal(err)
	}
	counts := make(map[string]int)
	for _, m := range got.Messages {
		counts[m.Payload]++
	}
	return counts
}

// A broker that dies in the middle of a move may have messages in both queues, one
// confirm's at most, and has lost none.
func TestMoveSurvivesTheDeathOfTheBroker(t *testing.T) {
	if dir := os.Getenv(brokerProcess); dir != "" {
		beBroker(t, dir)
		return
	}
	dir := t.TempDir()
	for _, typ := range []string{"classic", "quorum"} {
		k := startKillable(t, dir)
		from, to := typ+"-from", typ+"-to"
		for _, q := range []string{from, to} {
			k.call("PUT", "/queues/%2F/"+q, `{"durable":true,"arguments":{"x-queue-type":"`+typ+`"}}`).Body.Close()
		}
		const n = 60
		for i := range n {
			k.call("POST", "/exchanges/%2F/amq.default/publish", fmt.Sprintf(`{"properties":{"delivery_mode":2},"routing_key":"%s",
				"payload":"m%d","payload_encoding":"string"}`, from, i)).Body.Close()
		}
		resp := k.call("POST", "/queues/%2F/"+from+"/move", `{"to":{"queue":"`+to+`"},"rate":20,"progress":true}`)
		lines := bufio.NewScanner(resp.Body)
		if !lines.Scan() { // the first batch has been confirmed
			t.Fatal("the move tells of no progress")
		}
		k.kill()
		resp.Body.Close()

		k = startKillable(t, dir)
		left, moved := k.payloads(from), k.payloads(to)
		twice := 0
		for i := range n {
			m := fmt.Sprint("m", i)
			if left[m]+moved[m] == 0 {
				t.Errorf("%s: %s is lost", typ, m)
			}
			if left[m]+moved[m] > 1 {
				twice++
			}
		}
		if len(left) == 0 || len(moved) == 0 || twice > 2 {
			t.Errorf("%s: %d are left, %d moved and %d in both; want some, some, and 2 at most", typ, len(left), len(moved), twice)
		}
		k.kill()
	}
}
