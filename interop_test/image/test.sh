#!/usr/bin/env bash
# Starts the program the way RabbitMQ's image is used: by its variables, with
# files mounted where it has them, under the names of its tools; and asks it what
# health checks ask. All files are in a private folder. It needs the usual ports:
#
#   scripts/own-network interop_test/image/test.sh
#
# LEVERET names the program (bin/leveret).
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
leveret=$(realpath "${LEVERET:-$root/bin/leveret}")
work=$(mktemp -d)
log=$work/log
broker=
passed=0 failed=0
finish() {
	[ -z "$broker" ] || kill -KILL "$broker" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
unset LEVERET_MANAGEMENT_LISTEN LEVERET_LISTEN # those of the image are to count

mkdir -p "$work/bin" "$work/etc/conf.d" "$work/lib"
for tool in rabbitmq-server rabbitmqctl rabbitmq-diagnostics rabbitmq-plugins rabbitmqadmin rabbitmq-upgrade; do
	ln -s "$leveret" "$work/bin/$tool"
done
PATH=$work/bin:$PATH
# What the whole container has, docker exec too.
export HOME=$work/lib RABBITMQ_NODENAME=rabbit@localhost RABBITMQ_MNESIA_BASE=$work/lib/mnesia

# check NAME COMMAND... runs a command that must succeed.
check() {
	local name=$1 out
	shift
	if out=$(timeout 60 "$@" 2>&1); then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	printf 'FAIL %s: %s\n%s\n' "$name" "$*" "$out"
}

# wants NAME PATTERN COMMAND... runs a command whose output must match.
wants() {
	local name=$1 pattern=$2 out
	shift 2
	out=$(timeout 60 "$@" 2>&1)
	if grep -qE -- "$pattern" <<<"$out"; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	printf 'FAIL %s: want %s, got\n%s\n' "$name" "$pattern" "$out"
}

# start VARIABLE=VALUE... starts the server as the image's entry point does, and
# waits for the line that test containers wait for.
start() {
	: >"$log"
	env RABBITMQ_CONFIG_FILE="$work/etc/rabbitmq" RABBITMQ_CONFIG_FILES="$work/etc/conf.d" \
		RABBITMQ_ENABLED_PLUGINS_FILE="$work/etc/enabled_plugins" RABBITMQ_LOGS=- "$@" rabbitmq-server >"$log" 2>&1 &
	broker=$!
	for _ in $(seq 1200); do
		grep -q 'Server startup complete' "$log" && return
		kill -0 "$broker" 2>/dev/null || break
		sleep 0.05
	done
	echo "the server did not start:"
	cat "$log"
	exit 1
}

# stop ends it as docker stop does.
stop() {
	local code=0
	kill -TERM "$broker"
	wait "$broker" || code=$?
	broker=
	wants "SIGTERM in the log" 'SIGTERM received - shutting down' cat "$log"
	check "exit code 0 after SIGTERM" test "$code" = 0
}

health() { # USER:PASSWORD
	check "ping" rabbitmq-diagnostics -q ping
	check "ping with a time limit" rabbitmq-diagnostics ping -t 50
	check "check_running" rabbitmq-diagnostics -q check_running
	check "check_local_alarms" rabbitmq-diagnostics -q check_local_alarms
	check "check_port_connectivity" rabbitmq-diagnostics check_port_connectivity
	check "check_port_listener" rabbitmq-diagnostics -q check_port_listener 5672
	check "check_virtual_hosts" rabbitmq-diagnostics -q check_virtual_hosts
	check "status of rabbitmq-diagnostics" rabbitmq-diagnostics status
	check "status of rabbitmqctl" rabbitmqctl status
	check "node_health_check" rabbitmqctl node_health_check
	check "await_startup" rabbitmqctl await_startup
	check "wait for the pid file" rabbitmqctl wait "$work/lib/mnesia/rabbit@localhost.pid" --timeout 50
	check "await_online_quorum_plus_one" rabbitmq-upgrade await_online_quorum_plus_one -t 50
	check "port 5672" bash -c 'exec 3<>/dev/tcp/127.0.0.1/5672'
	local path
	for path in overview health/checks/alarms health/checks/local-alarms health/checks/virtual-hosts health/checks/port-listener/5672; do
		check "/api/$path" fetch "$1" "http://127.0.0.1:15672/api/$path"
	done
	wants "metrics" '^rabbitmq_identity_info' fetch "$1" http://127.0.0.1:15692/metrics
}

# fetch is wget or curl, whichever there is.
fetch() { # USER:PASSWORD URL
	if command -v curl >/dev/null; then
		curl -fsS -u "$1" "$2"
	else
		wget -qO- --auth-no-challenge --user="${1%%:*}" --password="${1#*:}" "$2"
	fi
}
export -f fetch

# check and wants run commands by timeout, which knows no functions.
timeout() {
	local seconds=$1
	shift
	if [ "$(type -t "$1")" = function ]; then
		"$@"
	else
		command timeout "$seconds" "$@"
	fi
}

echo '== variables alone'
start RABBITMQ_DEFAULT_USER=rabbitmq RABBITMQ_DEFAULT_PASS=sesame7 RABBITMQ_DEFAULT_VHOST=shop RABBITMQ_NODE_IP_ADDRESS=127.0.0.1 RABBITMQ_ERLANG_COOKIE=x
health rabbitmq:sesame7
check "the listener's line comes first" bash -c "sed '/Server startup complete/q' '$log' | grep -q 'started TCP listener on 127.0.0.1:5672'"
wants "the vhost" '^shop$' rabbitmqctl -q list_vhosts
wants "the user" 'rabbitmq.*administrator' rabbitmqctl -q list_users
wants "no guest" '^0$' bash -c 'rabbitmqctl -q list_users | grep -c guest'
wants "the login" 'Success' rabbitmqctl authenticate_user rabbitmq sesame7
check "the pid file" test -s "$work/lib/mnesia/rabbit@localhost.pid"
check "rabbitmqadmin declares" rabbitmqadmin -u rabbitmq -p sesame7 -V shop declare queue name=q durable=true 'arguments={"x-max-length":5}'
check "rabbitmqadmin publishes" rabbitmqadmin -u rabbitmq -p sesame7 -V shop publish routing_key=q payload=hello 'properties={"delivery_mode":2}'
wants "rabbitmqctl lists it" '^q[[:space:]]+1$' rabbitmqctl -q list_queues -p shop name messages
check "plug-ins can be enabled" rabbitmq-plugins enable rabbitmq_management
stop
check "the pid file is gone" test ! -e "$work/lib/mnesia/rabbit@localhost.pid"
check "no password in the log" bash -c "! grep -q sesame7 '$log'"

echo '== the data is kept, other variables do not change it'
start RABBITMQ_DEFAULT_USER=other RABBITMQ_DEFAULT_PASS=x RABBITMQ_NODE_PORT=5672 RABBITMQ_LOG=debug,+json
wants "the queue and its message" '^q[[:space:]]+1$' rabbitmqctl -q list_queues -p shop name messages
wants "no second user" '^0$' bash -c 'rabbitmqctl -q list_users | grep -c other'
wants "JSON in the log" '"msg":"Server startup complete; [0-9]+ plugins started\."' cat "$log"
stop

echo '== mounted files'
rm -rf "$work/lib/mnesia"
cat >"$work/etc/rabbitmq.conf" <<'CONF'
loopback_users.guest = false
listeners.tcp.default = 5672
management.tcp.port = 15672
prometheus.tcp.port = 15692
default_pass = $(SECRET)
log.console.level = warning # overridden below
CONF
printf 'log.console = true\nlog.console.level = info\n' >"$work/etc/conf.d/10-defaults.conf"
printf 'management.load_definitions = %s\ncluster_formation.peer_discovery_backend = classic_config\n' "$work/etc/definitions.json" >"$work/etc/conf.d/20-definitions.conf"
echo '[rabbitmq_management,rabbitmq_prometheus].' >"$work/etc/enabled_plugins"
cat >"$work/etc/definitions.json" <<'JSON'
{"users":[{"name":"app","password":"pw7","tags":"administrator"}],"vhosts":[{"name":"/"},{"name":"v"}],
 "permissions":[{"user":"app","vhost":"/","configure":".*","write":".*","read":".*"}],
 "queues":[{"name":"orders","vhost":"/","durable":true,"auto_delete":false,"arguments":{"x-queue-type":"quorum"}}]}
JSON
start SECRET=sesame8
health app:pw7
wants "the queue of the definitions" '^orders[[:space:]]+quorum$' rabbitmqctl -q list_queues name type
wants "all interfaces" 'started TCP listener on \[::\]:5672' cat "$log"
wants "a key without effect" 'cluster_formation.peer_discovery_backend is accepted and has no effect' cat "$log"
check "no password in the log" bash -c "! grep -qE 'sesame8|pw7' '$log'"
stop

echo '== what is wrong stops the start'
echo 'listener.tcp.default = 5672' >"$work/etc/conf.d/99-wrong.conf"
code=0
SECRET=x RABBITMQ_CONFIG_FILE=$work/etc/rabbitmq RABBITMQ_CONFIG_FILES=$work/etc/conf.d \
	command timeout 60 rabbitmq-server >"$log" 2>&1 || code=$?
check "exit code 1" test "$code" = 1
wants "the line that is wrong" '99-wrong.conf:1: there is no setting listener.tcp.default; did you mean listeners.tcp.default' cat "$log"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
