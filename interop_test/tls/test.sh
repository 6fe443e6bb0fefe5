#!/usr/bin/env bash
# Starts the program with certificates that it has made itself, and connects with
# openssl, amqplib and pika: with and without a certificate of the client, and
# after the server's was changed.
#
#   interop_test/tls/test.sh        LEVERET names the program (bin/leveret)
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
leveret=$(realpath "${LEVERET:-$root/bin/leveret}")
cd "$root" || exit 1
work=$(mktemp -d)
log=$work/log
broker=
failed=0
finish() {
	[ -z "$broker" ] || kill -KILL "$broker" 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT

"$leveret" tls generate "$work/tls" --hosts localhost,127.0.0.1 --client alice --client nobody >"$work/instructions" || exit 1
"$leveret" tls generate "$work/foreign" --client mallory >/dev/null || exit 1

# The configuration is what the command said to use, but for the port, and
# with a client's key that has a password.
sed 's/^listeners.ssl.default = .*/listeners.ssl.default = 127.0.0.1:0/' "$work/instructions" >"$work/leveret.conf"
openssl pkcs8 -topk8 -in "$work/tls/server.key" -passout pass:sesame -out "$work/tls/server.enc" || exit 1
sed -i 's/server\.key/server.enc/' "$work/leveret.conf"
echo 'ssl_options.password = sesame' >>"$work/leveret.conf"
"$leveret" --config "$work/leveret.conf" --listen 127.0.0.1:0 --data-dir "$work/data" --management-listen off --management-tls-listen 127.0.0.1:0 \
	--prometheus-listen off >"$log" 2>&1 &
broker=$!
for _ in $(seq 1200); do
	grep -q 'Server startup complete' "$log" && break
	kill -0 "$broker" 2>/dev/null || break
	sleep 0.05
done
TLS_PORT=$(sed -n 's/.*started TLS (SSL) listener on 127\.0\.0\.1:\([0-9]*\).*/\1/p' "$log")
HTTPS=$(sed -n 's/.*HTTP API on \(https:[^ ]*\).*/\1/p' "$log")
if [ -z "$TLS_PORT" ] || [ -z "$HTTPS" ]; then
	cat "$log"
	exit 1
fi
export TLS_PORT TLS_FOLDER=$work/tls FOREIGN_FOLDER=$work/foreign

# try NAME COMMAND... runs a command that must succeed.
try() {
	local name=$1 out
	shift
	if out=$("$@" 2>&1); then
		echo "ok   $name"
		return
	fi
	failed=1
	printf 'FAIL %s\n%s\n' "$name" "$out"
}

shake() { # OPTION... prints what openssl tells of a handshake
	timeout 60 openssl s_client -connect "127.0.0.1:$TLS_PORT" -servername localhost -CAfile "$work/tls/ca.pem" -verify_return_error "$@" </dev/null 2>&1
}
fingerprint() { shake | openssl x509 -noout -fingerprint -sha256; }

try "openssl verifies the certificate" bash -c "$(declare -f shake); work=$work; shake | grep -q 'Verify return code: 0'"
try "TLS 1.2 and 1.3, not 1.1" bash -c "$(declare -f shake); work=$work; shake -tls1_2 | grep -q 'Protocol *: TLSv1.2' && shake -tls1_3 | grep -q TLSv1.3 && ! shake -tls1_1 | grep -q 'Cipher is ECDHE'"
try "HTTPS" curl -fsS --cacert "$work/tls/ca.pem" -u guest:guest "$HTTPS/api/overview" -o /dev/null
# put PATH JSON changes something through the HTTP API.
put() { curl -fsS --cacert "$work/tls/ca.pem" -u guest:guest -X PUT -d "$2" "$HTTPS/api/$1"; }
try "a user without a password" put users/alice '{"password_hash":"","tags":""}'
try "its permissions" put permissions/%2f/alice '{"configure":".*","write":".*","read":".*"}'
try "Node: amqplib" timeout 300 env NODE_PATH=interop_test/node/node_modules node --test interop_test/tls/tls.test.js
try "Python: pika" timeout 300 scripts/python interop_test/tls/test_tls.py

before=$(fingerprint)
"$leveret" tls generate "$work/new" --hosts localhost,127.0.0.1 >/dev/null
cp "$work/new/ca.pem" "$work/tls/ca.pem"
cp "$work/new/server.pem" "$work/tls/server.pem"
openssl pkcs8 -topk8 -in "$work/new/server.key" -passout pass:sesame -out "$work/tls/server.enc"
kill -HUP "$broker"
for _ in $(seq 1200); do
	grep -q 'SIGHUP received: certificates read again' "$log" && break
	sleep 0.05
done
after=$(fingerprint)
try "a new certificate after SIGHUP" test -n "$after" -a "$before" != "$after"
try "no password in the log" bash -c "! grep -q sesame '$log'"

kill -TERM "$broker"
wait "$broker" || failed=1
broker=
[ "$failed" = 0 ]
