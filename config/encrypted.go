package config

import (
	"crypto"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/rand"
	_ "crypto/sha1" // the hash functions that crypto has by number
	_ "crypto/sha256"
	_ "crypto/sha512"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Encryption is how values of the configuration are encrypted, as RabbitMQ does
// it: a key made of a passphrase by PBKDF2, and AES in CBC mode. What is encrypted is
// a term in Erlang's external format.
type Encryption struct {
	Cipher     string // one of Ciphers
	Hash       string // one of Hashes
	Iterations int    // from 1 to maxIterations
}

// DefaultEncryption is RabbitMQ 4.0's.
func DefaultEncryption() Encryption {
	return Encryption{Cipher: "aes_128_cbc", Hash: "sha256", Iterations: 1}
}

// olderEncryption is what RabbitMQ's older releases had as the default.
func olderEncryption() Encryption {
	return Encryption{Cipher: "aes_256_cbc", Hash: "sha512", Iterations: 1000}
}

const (
	// maxIterations bounds what one value can cost: about a second for a million.
	maxIterations = 10_000_000
	// encryptedPrefix is what encrypted values begin with in rabbitmq.conf.
	encryptedPrefix = "encrypted:"
)

// Ciphers are the ciphers that values can be encrypted with.
func Ciphers() []string { return []string{"aes_256_cbc", "aes_192_cbc", "aes_128_cbc"} }

// Hashes are the hash functions that keys can be made with.
func Hashes() []string { return []string{"sha512", "sha384", "sha256", "sha224", "sha"} }

// Check says what is wrong with an Encryption.
func (e Encryption) Check() error {
	switch {
	case !slices.Contains(Ciphers(), e.Cipher):
		return fmt.Errorf("the cipher %s is not supported: want %s", e.Cipher, orList(Ciphers()))
	case !slices.Contains(Hashes(), e.Hash):
		return fmt.Errorf("the hash %s is not supported: want %s", e.Hash, orList(Hashes()))
	case e.Iterations < 1 || e.Iterations > maxIterations:
		return fmt.Errorf("%d iterations are not possible: want 1 to %d", e.Iterations, maxIterations)
	}
	return nil
}

// block makes the cipher's key of a passphrase.
func (e Encryption) block(passphrase string, salt []byte) (cipher.Block, error) {
	if err := e.Check(); err != nil {
		return nil, err
	}
	if passphrase == "" {
		return nil, errors.New("the passphrase is empty")
	}
	bits, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(e.Cipher, "aes_"), "_cbc"))
	if err != nil {
		return nil, err
	}
	made := map[string]crypto.Hash{"sha": crypto.SHA1, "sha224": crypto.SHA224, "sha256": crypto.SHA256, "sha384": crypto.SHA384, "sha512": crypto.SHA512}[e.Hash]
	key, err := pbkdf2.Key(made.New, passphrase, salt, e.Iterations, bits/8)
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(key)
}

// Encrypt encrypts a text, as a binary or, if it is to be a string, as one. The
// result is in Base64.
func (e Encryption) Encrypt(text, passphrase string, asString bool) (string, error) {
	out := make([]byte, 2*aes.BlockSize) // salt and initialization vector
	_, _ = rand.Read(out)                // it never fails
	block, err := e.block(passphrase, out[:aes.BlockSize])
	if err != nil {
		return "", err
	}
	term := externalTerm(text, asString)
	pad := aes.BlockSize - len(term)%aes.BlockSize
	term = append(term, slices.Repeat([]byte{byte(pad)}, pad)...)
	cipher.NewCBCEncrypter(block, out[aes.BlockSize:]).CryptBlocks(term, term)
	return base64.StdEncoding.EncodeToString(append(out, term...)), nil
}

// errWrongPassphrase is all that can be said of bytes that mean nothing when they
// are decrypted.
var errWrongPassphrase = errors.New("it cannot be decrypted: is the passphrase right, and are cipher, hash and iterations those that it was encrypted with?")

// Decrypt is the text of an encrypted term, which is a string, binary, atom or
// number; text is in Base64.
func (e Encryption) Decrypt(text, passphrase string) (string, error) {
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) < 3*aes.BlockSize || len(raw)%aes.BlockSize != 0 {
		return "", errors.New("it is no encrypted value: `rabbitmqctl encrypt_conf_value` makes one")
	}
	block, err := e.block(passphrase, raw[:aes.BlockSize])
	if err != nil {
		return "", err
	}
	term := raw[2*aes.BlockSize:]
	cipher.NewCBCDecrypter(block, raw[aes.BlockSize:2*aes.BlockSize]).CryptBlocks(term, term)
	pad := int(term[len(term)-1])
	if pad < 1 || pad > aes.BlockSize {
		return "", errWrongPassphrase
	}
	return externalText(term[:len(term)-pad])
}

// The tags of Erlang's external term format that values of a configuration have.
const (
	termVersion   = 131
	termSmallInt  = 97
	termInt       = 98
	termOldAtom   = 100
	termNil       = 106
	termString    = 107
	termList      = 108
	termBinary    = 109
	termSmallAtom = 119
)

// externalTerm is a text as a string, a list of characters, or as a binary.
func externalTerm(text string, asString bool) []byte {
	if !asString {
		return append(binary.BigEndian.AppendUint32([]byte{termVersion, termBinary}, uint32(len(text))), text...)
	}
	chars := []rune(text)
	if len(chars) == 0 {
		return []byte{termVersion, termNil}
	}
	if len(chars) > 0xFFFF || slices.Max(chars) > 0xFF {
		out := binary.BigEndian.AppendUint32([]byte{termVersion, termList}, uint32(len(chars)))
		for _, c := range chars {
			out = binary.BigEndian.AppendUint32(append(out, termInt), uint32(c))
		}
		return append(out, termNil)
	}
	out := binary.BigEndian.AppendUint16([]byte{termVersion, termString}, uint16(len(chars)))
	for _, c := range chars {
		out = append(out, byte(c))
	}
	return out
}

// externalText is the text of a term that has one.
func externalText(b []byte) (string, error) {
	if len(b) < 2 || b[0] != termVersion {
		return "", errWrongPassphrase
	}
	tag, rest := b[1], b[2:]
	length := func(bytes int) ([]byte, bool) { // what follows a length of so many bytes
		n := 0
		for _, c := range rest[:min(bytes, len(rest))] {
			n = n<<8 | int(c)
		}
		if len(rest) < bytes || len(rest)-bytes != n {
			return nil, false
		}
		return rest[bytes:], true
	}
	switch tag {
	case termNil:
		return "", nil
	case termSmallInt:
		if len(rest) == 1 {
			return strconv.Itoa(int(rest[0])), nil
		}
	case termInt:
		if len(rest) == 4 {
			return strconv.Itoa(int(int32(binary.BigEndian.Uint32(rest)))), nil
		}
	case termBinary:
		if text, ok := length(4); ok {
			return string(text), nil
		}
	case termSmallAtom:
		if text, ok := length(1); ok {
			return string(text), nil
		}
	case termOldAtom:
		if text, ok := length(2); ok {
			return string(text), nil
		}
	case termString:
		if text, ok := length(2); ok {
			return latin1(text), nil
		}
	case termList:
		return externalList(rest)
	}
	return "", errWrongPassphrase
}

// latin1 is the text of characters of one byte.
func latin1(b []byte) string {
	var text []byte
	for _, c := range b {
		text = utf8.AppendRune(text, rune(c))
	}
	return string(text)
}

// externalList is the text of a list of characters.
func externalList(b []byte) (string, error) {
	if len(b) < 4 {
		return "", errWrongPassphrase
	}
	n, rest := binary.BigEndian.Uint32(b), b[4:]
	var text []byte
	for ; n > 0; n-- {
		switch {
		case len(rest) >= 2 && rest[0] == termSmallInt:
			text, rest = utf8.AppendRune(text, rune(rest[1])), rest[2:]
		case len(rest) >= 5 && rest[0] == termInt:
			text, rest = utf8.AppendRune(text, rune(int32(binary.BigEndian.Uint32(rest[1:])))), rest[5:]
		default:
			return "", errWrongPassphrase
		}
	}
	if len(rest) != 1 || rest[0] != termNil {
		return "", errWrongPassphrase
	}
	return string(text), nil
}

// takeDecoder takes the passphrase for encrypted values out of advanced.config
// (RabbitMQ 4.0: config_entry_decoder).
func (l *loader) takeDecoder(value erlTerm) error {
	e := DefaultEncryption()
	for _, pair := range value.items {
		if pair.kind != erlTuple || len(pair.items) != 2 {
			return errors.New(`want [{passphrase, <<"...">>}] or [{passphrase, {file, "..."}}]`)
		}
		v := pair.items[1]
		switch pair.items[0].text {
		case "cipher":
			e.Cipher = v.text
		case "hash":
			e.Hash = v.text
		case "iterations":
			n, err := strconv.Atoi(v.text)
			if err != nil {
				return errors.New("iterations: want a number")
			}
			e.Iterations = n
		case "passphrase":
			var err error
			if l.passphrase, err = passphrase(v); err != nil {
				return err
			}
		default:
			return fmt.Errorf("there is no %s: want passphrase, cipher, hash or iterations", pair.items[0].text)
		}
	}
	l.encryption = e
	return e.Check()
}

// passphrase is a passphrase, or what a file has for one.
func passphrase(v erlTerm) (string, error) {
	switch {
	case v.kind == erlText:
		return v.text, nil
	case v.kind == erlTuple && len(v.items) == 2 && v.items[0].text == "file":
		b, err := os.ReadFile(v.items[1].text)
		if err != nil {
			return "", fmt.Errorf("read the passphrase: %w", err)
		}
		return strings.TrimRight(string(b), "\r\n"), nil
	}
	return "", errors.New(`passphrase: want <<"...">> or {file, "..."}: nobody is asked for it`)
}

// decrypted is an entry in plain text. Only passwords are encrypted; what others
// have is taken as it is (RabbitMQ 4.0).
func (l *loader) decrypted(e entry) (entry, error) {
	text, encrypted := strings.CutPrefix(e.value, encryptedPrefix)
	if !encrypted || !strings.HasSuffix(e.key, "pass") && !strings.HasSuffix(e.key, "password") {
		return e, nil
	}
	if l.passphrase == "" {
		return e, fmt.Errorf(`%s: %s is encrypted, and there is no passphrase: put [{rabbit, [{config_entry_decoder, [{passphrase, {file, "..."}}]}]}]. into advanced.config, or use $(NAME) to take the password from an environment variable`,
			e.where(), e.key)
	}
	plain, err := l.encryption.Decrypt(text, l.passphrase)
	if errors.Is(err, errWrongPassphrase) && l.encryption == DefaultEncryption() {
		plain, err = olderEncryption().Decrypt(text, l.passphrase)
	}
	if err != nil {
		return e, fmt.Errorf("%s: %s: %w", e.where(), e.key, err)
	}
	if strings.ContainsAny(plain, "\r\n") {
		return e, fmt.Errorf("%s: %s has a line break in it", e.where(), e.key)
	}
	e.value = plain
	return e, nil
}
