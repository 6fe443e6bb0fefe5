package main

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/leveretmq/leveret/config"
)

// encryptCommands work on values of configuration files and need no broker.
func encryptCommands() []command {
	how := func(f *pflag.FlagSet) {
		d := config.DefaultEncryption()
		f.String("cipher", d.Cipher, "the `cipher`: "+strings.Join(config.Ciphers(), ", "))
		f.String("hash", d.Hash, "the `hash` that makes the key: "+strings.Join(config.Hashes(), ", "))
		f.Int("iterations", d.Iterations, "`number` of rounds that make the key of the passphrase; more make guessing harder")
	}
	return []command{
		{use: "encode VALUE [PASSPHRASE]", short: "Encrypt a value for advanced.config; without an argument the passphrase is read from standard input",
			args: cobra.RangeArgs(1, 2), flags: how, run: encode},
		{use: "decode VALUE [PASSPHRASE]", short: "Decrypt a value of advanced.config", args: cobra.RangeArgs(1, 2), flags: how, run: decode},
		{use: "encrypt_conf_value VALUE [PASSPHRASE]", short: "Encrypt a password for rabbitmq.conf", args: cobra.RangeArgs(1, 2), flags: how, run: encryptConfValue},
		{use: "decrypt_conf_value VALUE [PASSPHRASE]", short: "Decrypt a password of rabbitmq.conf", args: cobra.RangeArgs(1, 2), flags: how, run: decryptConfValue},
		{use: "list_ciphers", short: "List the ciphers for encrypted values", args: cobra.NoArgs, run: listWords("Listing supported ciphers ...", config.Ciphers)},
		{use: "list_hashes", short: "List the hash functions for encrypted values", args: cobra.NoArgs, run: listWords("Listing supported hash algorithms ...", config.Hashes)},
	}
}

func listWords(title string, words func() []string) func(context.Context, *session, []string) error {
	return func(_ context.Context, s *session, _ []string) error {
		s.say("%s", title)
		if s.opts.formatter == "json" {
			return s.document(words())
		}
		s.printf("[%s]\n", strings.Join(words(), ","))
		return nil
	}
}

// encryption is what the options say.
func (s *session) encryption() (config.Encryption, error) {
	n, err := strconv.Atoi(s.flag("iterations"))
	if err != nil {
		return config.Encryption{}, err
	}
	e := config.Encryption{Cipher: s.flag("cipher"), Hash: s.flag("hash"), Iterations: n}
	if err := e.Check(); err != nil {
		return e, exitf(exitData, "%v", err)
	}
	return e, nil
}

// passphrase is the second argument, or else a line of the standard input.
func (s *session) passphrase(args []string) (string, error) {
	text, err := s.secret(args, 1)
	if e, ok := errors.AsType[*exitError](err); ok && e.code == exitData || err == nil && text == "" {
		return "", exitf(exitData, "the passphrase is empty; give it as the second argument or as a line on standard input")
	}
	return text, err
}

// encrypted is a text encrypted with the passphrase that is the second argument.
func (s *session) encrypted(text string, asString bool, args []string) (string, error) {
	how, err := s.encryption()
	if err != nil {
		return "", err
	}
	passphrase, err := s.passphrase(args)
	if err != nil {
		return "", err
	}
	value, err := how.Encrypt(text, passphrase, asString)
	if err != nil {
		return "", exitf(exitData, "%v", err)
	}
	return value, nil
}

// decrypted is the text of a value in Base64.
func (s *session) decrypted(value string, args []string) (string, error) {
	how, err := s.encryption()
	if err != nil {
		return "", err
	}
	passphrase, err := s.passphrase(args)
	if err != nil {
		return "", err
	}
	text, err := how.Decrypt(value, passphrase)
	if err != nil {
		return "", exitf(exitUnavailable, "%v", err)
	}
	return text, nil
}

// encode encrypts "text", a string, or <<"text">>, a binary; other words are taken
// for binaries.
func encode(_ context.Context, s *session, args []string) error {
	s.say("Encrypting value to be used in advanced.config...")
	text, asString := args[0], false
	if inner, ok := between(text, `<<"`, `">>`); ok {
		text = inner
	} else if inner, ok := between(text, `"`, `"`); ok {
		text, asString = inner, true
	}
	value, err := s.encrypted(text, asString, args)
	if err != nil {
		return err
	}
	return s.result(`{encrypted,<<"%s">>}`, value)
}

// decode takes {encrypted,<<"...">>}, or what is in it alone.
func decode(_ context.Context, s *session, args []string) error {
	s.say("Decrypting an advanced.config (Erlang term) value...")
	value := strings.Map(func(r rune) rune {
		if r == ' ' || r == '\n' {
			return -1
		}
		return r
	}, args[0])
	if inner, ok := between(value, `{encrypted,<<"`, `">>}`); ok {
		value = inner
	}
	text, err := s.decrypted(value, args)
	if err != nil {
		return err
	}
	return s.result(`"%s"`, text)
}

func encryptConfValue(_ context.Context, s *session, args []string) error {
	s.say("Encrypting value to be used in rabbitmq.conf...")
	value, err := s.encrypted(args[0], false, args)
	if err != nil {
		return err
	}
	return s.result("encrypted:%s", value)
}

func decryptConfValue(_ context.Context, s *session, args []string) error {
	s.say("Decrypting a rabbitmq.conf string value...")
	text, err := s.decrypted(strings.TrimPrefix(args[0], "encrypted:"), args)
	if err != nil {
		return err
	}
	return s.result("%s", text)
}

// between is what is in text between two ends.
func between(text, before, after string) (string, bool) {
	rest, ok := strings.CutPrefix(text, before)
	if !ok {
		return "", false
	}
	return strings.CutSuffix(rest, after)
}
