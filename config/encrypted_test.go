package config

import (
	"strings"
	"testing"
)

// RabbitMQ 4.0's own values: encode "foo", encode <<"bünnies">>, encode foo, and
// encrypt_conf_value foo.
func TestDecryptRabbitMQsValues(t *testing.T) {
	weak := Encryption{Cipher: "aes_128_cbc", Hash: "sha256", Iterations: 10}
	for _, tt := range []struct {
		how                     Encryption
		value, passphrase, want string
	}{
		{DefaultEncryption(), "6HB4MN3jGRrYpYlC/MXrmAeOGctwxzHT4tTh6WD/389Up6Uy4MFTGjTcMFDgIcjH", "secret", "foo"},
		{DefaultEncryption(), "iFCcThuF+YoEtXl7luEMHXM/GkoQU2w6cyOpzPIOS2oRnzJBY4203HjBiYE8q4rQ", "my secret", "foo"},
		{DefaultEncryption(), "ziuz4dfQyULe8A47TvHlRHt7wfBp41ni57c1Eqeq4afTR81skZ6L/gDydYZ7gu8n", "my secret", "b\xfcnnies"},
		{DefaultEncryption(), "2Y8scdO4eHrG3GIooudLzr8vztAOXWVPDQbJGmX67OtA48luAok0XsM5NfHBDD5N", "my secret", "foo"},
		{weak, "QHyqZyEvO/4UrkVOKi9fKsVFCqW1s5nCon7kY05rLfODAx/HxyQAAWyQU16SRTWh", "s", "foo"},
		{DefaultEncryption(), "z76ifFf2uvo5Z8pHzsTW0HdsPEvVcGlzPEJs7Fsukj4m+p2suzkVy+vfRp6AZVkI", "bar", "foo"},
	} {
		if got, err := tt.how.Decrypt(tt.value, tt.passphrase); err != nil || got != tt.want {
			t.Errorf("decrypt %s: %q (%v), want %q", tt.value, got, err, tt.want)
		}
		if got, err := tt.how.Decrypt(tt.value, tt.passphrase+"x"); err == nil {
			t.Errorf("decrypt %s with another passphrase: %q, want an error", tt.value, got)
		}
	}
}

func TestEncryptedTextsComeBack(t *testing.T) {
	for _, text := range []string{"", "a", "fifteen letters", "sixteen letters.", "b\u00fcnnies", "\u5154", strings.Repeat("x", 70000)} {
		for _, asString := range []bool{false, true} {
			for _, name := range Hashes() {
				how := Encryption{Cipher: Ciphers()[len(text)%3], Hash: name, Iterations: 3}
				value, err := how.Encrypt(text, "p", asString)
				if err != nil {
					t.Fatal(err)
				}
				if got, err := how.Decrypt(value, "p"); err != nil || got != text {
					t.Errorf("%+v: %.20q (%v), want %.20q", how, got, err, text)
				}
			}
		}
	}
}

// Passwords are decrypted in both files, with the passphrase of advanced.config.
func TestEncryptedPasswords(t *testing.T) {
	how := Encryption{Cipher: "aes_192_cbc", Hash: "sha384", Iterations: 20}
	value := func(text string) string {
		v, err := how.Encrypt(text, "pass phrase", false)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	old, err := olderEncryption().Encrypt("four", "p", true)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := loadAdvanced(t, "default_pass = encrypted:"+old, `[{rabbit, [{config_entry_decoder, [{passphrase, <<"p">>}]}]}].`, map[string]string{})
	if err != nil || c.DefaultPass != "four" {
		t.Errorf("older defaults give %q (%v), want four", c.DefaultPass, err)
	}
	conf := "default_pass = encrypted:" + value("one") + "\ndefault_users.u.password = encrypted:" + value("two") + "\ncluster_name = encrypted:x\n"
	advanced := `[{rabbit, [{config_entry_decoder, [{passphrase, <<"pass phrase">>}, {cipher, aes_192_cbc}, {hash, sha384}, {iterations, 20}]},
		{anonymous_login_pass, {encrypted, <<"` + value("three") + `">>}}]}].`
	c, _, err = loadAdvanced(t, conf, advanced, map[string]string{})
	if err != nil {
		t.Fatal(err)
	}
	if c.DefaultPass != "one" || c.DefaultUsers[0].Password != "two" || c.Auth.AnonymousPass != "three" || c.ClusterName != "encrypted:x" {
		t.Errorf("passwords %q, %q, %q, cluster %q; want one, two, three, and encrypted:x as it is", c.DefaultPass, c.DefaultUsers[0].Password, c.Auth.AnonymousPass, c.ClusterName)
	}
}

// FuzzExternalText: what is read as a text is the text that is written.
func FuzzExternalText(f *testing.F) {
	for _, text := range []string{"", "foo", "\u00fc", "\u5154"} {
		f.Add(externalTerm(text, false))
		f.Add(externalTerm(text, true))
	}
	f.Add([]byte{termVersion, termSmallInt, 7})
	f.Add([]byte{termVersion, termList, 0xFF, 0xFF, 0xFF, 0xFF, termNil})
	f.Fuzz(func(t *testing.T, b []byte) {
		text, err := externalText(b)
		if err != nil {
			return
		}
		if again, err := externalText(externalTerm(text, false)); err != nil || again != text {
			t.Errorf("%x is %q, written and read again %q (%v)", b, text, again, err)
		}
	})
}
