package main

import "testing"

// Mistakes have the exit codes that they have with RabbitMQ 4.0.
func TestExitCodesOfMistakes(t *testing.T) {
	startBroker(t)
	for line, want := range map[string]int{
		"list_user_permissions nobody":                 exitUnavailable,
		"list_user_topic_permissions nobody":           exitUnavailable,
		"list_user_limits --user nobody":               exitUnavailable,
		`set_user_limits nobody {"max-connections":1}`: exitUnavailable,
		"clear_user_limits nobody all":                 exitUnavailable,
		"clear_user_limits nobody max-channels":        exitUnavailable,
		"clear_password nobody":                        exitUnavailable,
		"change_password nobody x":                     exitNoUser,
		"set_user_tags nobody administrator":           exitNoUser,
		"set_permissions nobody .* .* .*":              exitNoUser,
		"clear_permissions nobody":                     0,
		"clear_permissions -p nowhere guest":           0,
		"clear_topic_permissions -p nowhere guest":     0,
		"list_parameters -p nowhere":                   exitData,
		"list_parameters":                              0,
		"clear_vhost_limits":                           exitUnavailable,
		"clear_vhost_limits -p nowhere":                exitUnavailable,
		"restart_vhost -p nowhere":                     exitSoftware,
		"trace_on -p nowhere":                          0,
		"trace_off -p nowhere":                         0,
		"close_connection nobody bye":                  exitUnavailable,
		"close_connection <rabbit@here.1.2.3> bye":     0,
		"close_all_connections -p nowhere bye":         0,
		"change_password guest":                        exitSoftware,
		"set_permissions_globally guest .* .* (":       exitUnavailable,
		"clear_user_limits guest max-hares":            0,
		"rebalance classic":                            exitUnavailable,
		"rebalance quorum --vhost-pattern a.*":         0,
		"grow rabbit@nowhere all":                      exitUsage,
		"grow rabbit@nowhere most":                     exitUsage,
		"memory_breakdown --unit gigabytes":            0,
		"check_certificate_expiration --within soon":   exitUsage,
		"cipher_suites --format map":                   exitData,
		"export_definitions - --format yaml":           exitData,
		"close_all_connections":                        exitUsage,
		"close_all_user_connections guest":             exitUsage,
		"close_all_user_connections guest maintenance": 0,
	} {
		if code, _, errs := call(t, "", append([]string{"rabbitmqctl"}, words(line)...)...); code != want {
			t.Errorf("%s: exit %d, want %d; %s", line, code, want, errs)
		}
	}
}

// The texts, too, are those of RabbitMQ 4.0, as far as they say what is wrong.
func TestMistakesWithQueues(t *testing.T) {
	startBroker(t)
	for _, tt := range []struct {
		line string
		code int
		text string
	}{
		{"rabbitmqadmin declare queue name=q", 0, ""},
		{"rabbitmqadmin publish routing_key=q payload=x", 0, ""},
		{"rabbitmqctl delete_queue q --if-empty", exitUnavailable, "Deleting queue 'q' on vhost '/' if queue is empty ...\nError:\nqueue 'q' in vhost '/' not empty\n"},
		{"rabbitmqctl delete_queue none -e -u", exitUsage, "Deleting queue 'none' on vhost '/' if queue is empty and if queue is unused ...\nError:\nQueue not found: none\n"},
		{"rabbitmq-queues quorum_status q", exitUnavailable, "Error:\nCannot get quorum status of a classic queue\n"},
		{"rabbitmq-queues reclaim_quorum_memory q", exitUnavailable, "Will flush Raft WAL of quorum queue q ...\nError:\nThis operation is not applicable to classic queues\n"},
		{"rabbitmqctl list_queues -q --online --offline", 0, "name\tmessages\nq\t1\n"},
		{"rabbitmqctl list_queues -q --offline", 0, ""},
	} {
		code, out, errs := call(t, "", words(tt.line)...)
		if code != tt.code || tt.text != "" && out+errs != tt.text {
			t.Errorf("%s: exit %d, want %d:\n%s", tt.line, code, tt.code, out+errs)
		}
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "hash_password", ""); code != exitData || errs != "Error:\nBad argument: password cannot be an empty string\n" {
		t.Errorf("hash_password of nothing: exit %d, %q", code, errs)
	}
	if code, _, errs := call(t, "", "rabbitmqctl", "close_connection", "127.0.0.1:1 -> 127.0.0.1:2", "bye"); code != 0 {
		t.Errorf("close_connection of one that has gone: exit %d, %q", code, errs)
	}
}
