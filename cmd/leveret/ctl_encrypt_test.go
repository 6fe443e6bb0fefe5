package main

import (
	"strings"
	"testing"
)

// What is encrypted comes back, with a passphrase from standard input, too. No broker
// is asked.
func TestEncryptAndDecrypt(t *testing.T) {
	ask(t, "http://"+nobody)
	for _, tt := range []struct{ encrypt, decrypt, value, prefix, want string }{
		{"encode", "decode", `"foo"`, `{encrypted,<<"`, `"foo"`},
		{"encode", "decode", `<<"foo">>`, `{encrypted,<<"`, `"foo"`},
		{"encrypt_conf_value", "decrypt_conf_value", "p\u00e4ss", "encrypted:", "p\u00e4ss"},
	} {
		code, value, errs := call(t, "secret\n", "rabbitmqctl", "-q", tt.encrypt, tt.value)
		if code != 0 || !strings.HasPrefix(value, tt.prefix) {
			t.Fatalf("%s %s: exit %d, %q, %s", tt.encrypt, tt.value, code, value, errs)
		}
		if code, out, errs := call(t, "", "rabbitmqctl", "-q", tt.decrypt, strings.TrimSpace(value), "secret"); code != 0 || out != tt.want+"\n" {
			t.Errorf("%s: exit %d, %q, %s; want %q", tt.decrypt, code, out, errs, tt.want)
		}
	}
}
