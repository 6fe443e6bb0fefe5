#!/usr/bin/env bash
# What C clients see of the broker, tested with the command line tools of
# rabbitmq-c (Debian: amqp-tools). AMQP_URL names the broker.
set -u
: "${AMQP_URL:?must name the broker to test}"
url=${AMQP_URL%/} # a path, even an empty one, would be a vhost
passed=0 failed=0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# check NAME WANT GOT
check() {
	if [ "$2" = "$3" ]; then
		passed=$((passed + 1))
		return
	fi
	failed=$((failed + 1))
	printf 'FAIL %s: got %s, want %s\n' "$1" "$(printf %q "$3")" "$(printf %q "$2")"
}

q=ctools-$$
printf '#!/bin/sh\ncat\necho\n' >"$work/line" # prints a body as a line
chmod +x "$work/line"
check 'declare' "$q" "$(amqp-declare-queue --url="$url" --queue="$q" --durable)"
check 'declare again' "$q" "$(amqp-declare-queue --url="$url" --queue="$q" --durable)"
check 'declare otherwise' "queue.declare: server channel error 406, message: PRECONDITION_FAILED - inequivalent arg 'durable' for queue '$q' in vhost '/': received 'false' but current is 'true'" \
	"$(amqp-declare-queue --url="$url" --queue="$q" 2>&1)"

for body in one two three; do
	amqp-publish --url="$url" --routing-key="$q" --persistent --content-type=text/plain --body="$body"
	check "publish $body" 0 $?
done
check 'get' one "$(amqp-get --url="$url" --queue="$q")"
check 'consume' 'two
three' "$(timeout 60 amqp-consume --url="$url" --queue="$q" --count=2 --prefetch-count=1 "$work/line")"
amqp-get --url="$url" --queue="$q" >"$work/empty"
check 'get of an empty queue' 2 $?
check 'get of an empty queue prints nothing' '' "$(cat "$work/empty")"

head -c 1000000 /dev/urandom >"$work/body"
amqp-publish --url="$url" --routing-key="$q" <"$work/body"
amqp-get --url="$url" --queue="$q" >"$work/got"
check 'a body of a megabyte' same "$(cmp "$work/body" "$work/got" && echo same)"

printf 'a\nb\nc\n' | amqp-publish --url="$url" --routing-key="$q" --line-buffered
check 'line by line' 'a
b
c' "$(timeout 60 amqp-consume --url="$url" --queue="$q" --no-ack --count=3 cat)"

# An exchange, a binding and a consumer that comes first.
timeout 60 amqp-consume --url="$url" --exchange=amq.topic --routing-key="$q.*" --count=1 cat >"$work/topic" 2>/dev/null &
consumer=$!
for _ in $(seq 500); do # until its queue is bound; what comes earlier is dropped
	kill -0 "$consumer" 2>/dev/null || break
	amqp-publish --url="$url" --exchange=amq.topic --routing-key="$q.x" --body=routed
	sleep 0.1
done
wait "$consumer"
check 'topic exchange' routed "$(cat "$work/topic")"

check 'delete' 0 "$(amqp-delete-queue --url="$url" --queue="$q")"
check 'delete again' 0 "$(amqp-delete-queue --url="$url" --queue="$q")"
amqp-get --url="$url" --queue="$q" 2>"$work/err" >"$work/out"
check 'get of a missing queue' 1 $?
check 'get of a missing queue says why' 1 "$(grep -c "404, message: NOT_FOUND - no queue '$q' in vhost '/'" "$work/err")"
wrong=${url/guest:guest@/guest:wrong@}
amqp-get --url="$wrong" --queue="$q" 2>"$work/err" >"$work/out"
check 'wrong password' 1 $?
check 'wrong password says why' 1 "$(grep -c 'logging in' "$work/err")"

echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
