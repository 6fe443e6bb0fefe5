package main

import (
	"strings"
	"testing"
)

func TestNewerRabbitmqadmin(t *testing.T) {
	for _, tt := range []struct{ newer, older string }{
		{"declare queue --name q --type quorum --durable true", "declare queue name=q queue_type=quorum durable=true"},
		{"--vhost v declare exchange --name=x --type topic --auto-delete false", "--vhost v declare exchange name=x type=topic auto_delete=false"},
		{"declare binding --source x --destination-type queue --destination q --routing-key k", "declare binding source=x destination_type=queue destination=q routing_key=k"},
		{"declare user --name u --password p --tags t", "declare user name=u password=p tags=t"},
		{"declare policy --name p --pattern ^q --apply-to queues --definition {}", "declare policy name=p pattern=^q apply-to=queues definition={}"},
		{"declare permissions --vhost v --user u --configure .* --read .* --write .*", "--vhost v declare permission user=u configure=.* read=.* write=.*"},
		{"publish message --routing-key q --payload hi", "publish routing_key=q payload=hi"},
		{"get messages --queue q --ack-mode ack_requeue_false", "get queue=q ackmode=ack_requeue_false"},
		{"definitions export --file f.json", "export f.json"},
		{"delete queue --name q", "delete queue name=q"},
		{"-u a -p b list queues", "-u a -p b list queues"},
		{"list queues name messages", "list queues name messages"},
		{"declare queue name=q --vhost v", "declare queue name=q --vhost v"},
		{"-V v -q declare queue name=q", "-V v -q declare queue name=q"},
		{"list queues --host mq --port 15673", "list queues --host mq --port 15673"},
		{"list users --username=a --password=b", "list users --username=a --password=b"},
		{"declare user name=u tags= --password b", "declare user name=u tags= --password b"},
		{"declare queue --name q -k --port 1 --request-timeout 5", "-k --port 1 --request-timeout 5 declare queue name=q"},
		{"health_check port_listener --port 5672", "health_check port_listener port=5672"},
		{"health_check local_alarms --host mq", "--host mq health_check local_alarms"},
		{"", ""},
		{"-u", "-u"},
	} {
		if got := strings.Join(fromV2(strings.Fields(tt.newer)), " "); got != tt.older {
			t.Errorf("%q is %q, want %q", tt.newer, got, tt.older)
		}
	}
}

// Whatever the words are, the translation ends without a panic.
func FuzzNewerRabbitmqadmin(f *testing.F) {
	f.Add("declare queue --name q --type")
	f.Add("-V --x= - -- health_check")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Fields(line)
		if got := fromV2(args); len(got) > len(args)+1 {
			t.Errorf("%q has become longer: %q", args, got)
		}
	})
}
