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
		"close_all_connections":                        exitUsage,
		"close_all_user_connections guest":             exitUsage,
		"close_all_user_connections guest maintenance": 0,
	} {
		if code, _, errs := call(t, "", append([]string{"rabbitmqctl"}, words(line)...)...); code != want {
			t.Errorf("%s: exit %d, want %d; %s", line, code, want, errs)
		}
	}
}
