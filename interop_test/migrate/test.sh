#!/usr/bin/env bash
# Moves a RabbitMQ to the broker at AMQP_URL and API_URL: the
# program is interrupted by a signal, killed, and run to its end. Everything must
# be there then, in order, as it was, and no more of it twice than was under way
# when it was killed.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
leveret=${LEVERET:-$root/bin/leveret}
count=3000
prefetch=50
messages() { "$root/scripts/python" "$root/interop_test/migrate/messages.py" "$@"; }
migrate=("$leveret" migrate "$RABBITMQ_URL" --management "$RABBITMQ_API" --to "${AMQP_URL%/}"
	--to-management "$API_URL" --prefetch "$prefetch")
# interrupted SIGNAL: ends a migration when it has moved something. It stands still
# while this looks how much that is, so that it cannot be done before.
interrupted() {
	before=$(moved)
	"${migrate[@]}" --json >"$log" 2>&1 &
	pid=$!
	while kill -STOP "$pid" 2>/dev/null && [ "$(moved)" -le "$((before + 100))" ]; do
		kill -CONT "$pid"
		sleep 0.05
	done
	kill "-$1" "$pid" 2>/dev/null || true # the code tells if it has ended
	kill -CONT "$pid" 2>/dev/null || true
	code=0
	wait "$pid" || code=$?
}
# moved is how many messages are in the target's queues.
moved() {
	"$leveret" list_queues --url "$API_URL" -s messages | awk '{ n += $1 } END { print n + 0 }'
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT

messages fill "$RABBITMQ_URL" "$count"
"${migrate[@]}" --dry-run
interrupted INT
[ "$code" = 75 ] || { echo "after SIGINT it ended with $code, want 75:" >&2; cat "$log" >&2; exit 1; }
interrupted KILL
[ "$code" = 137 ] || { echo "it had ended before it was killed:" >&2; cat "$log" >&2; exit 1; }
"${migrate[@]}"
messages check "$AMQP_URL" "$count" "$prefetch"
