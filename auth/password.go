package auth

import (
	"crypto/md5"
	"crypto/rand"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/subtle"
	"encoding/base64"

	"github.com/leveretmq/leveret/frames"
)

// An Algorithm names how a password hash was made, as RabbitMQ does.
type Algorithm string

// The algorithms. MD5 is only verified: such hashes come from old definitions.
const (
	SHA256 Algorithm = "rabbit_password_hashing_sha256"
	SHA512 Algorithm = "rabbit_password_hashing_sha512"
	MD5    Algorithm = "rabbit_password_hashing_md5"
)

// sum hashes b, or returns nil if the algorithm is unknown.
func (a Algorithm) sum(b []byte) []byte {
	switch a {
	case SHA256:
		h := sha256.Sum256(b)
		return h[:]
	case SHA512:
		h := sha512.Sum512(b)
		return h[:]
	case MD5:
		h := md5.Sum(b)
		return h[:]
	}
	return nil
}

// saltLength is in bytes (RabbitMQ 4.0).
const saltLength = 4

// A hash is a stored password: base64(salt + H(salt + password)). The zero
// value matches no password. It is immutable.
type hash struct {
	algorithm Algorithm
	text      string // base64, as it came
	raw       []byte // decoded
}

// newHash hashes a password with a fresh salt.
func newHash(alg Algorithm, password string) hash {
	var salt [saltLength]byte
	rand.Read(salt[:])
	raw := append(salt[:], alg.sum(append(salt[:], password...))...)
	return hash{alg, base64.StdEncoding.EncodeToString(raw), raw}
}

// parseHash takes a hash made elsewhere. "" is no password; an algorithm of ""
// is SHA256. A hash of the wrong length is taken, as RabbitMQ takes it, and
// matches nothing.
func parseHash(alg Algorithm, text string) (hash, error) {
	if alg == "" {
		alg = SHA256
	}
	if alg.sum(nil) == nil {
		return hash{}, frames.Errorf(frames.PreconditionFailed,
			"unknown hashing_algorithm '%s': use %s, %s or %s", alg, SHA256, SHA512, MD5)
	}
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return hash{}, frames.Errorf(frames.PreconditionFailed, "password_hash is not base64")
	}
	return hash{alg, text, raw}, nil
}

// matches compares in a time that does not depend on where the sums differ. The
// empty password matches nothing (RabbitMQ 4.0: blank passwords are refused).
func (h hash) matches(password string) bool {
	if password == "" || len(h.raw) <= saltLength {
		return false
	}
	salted := append(h.raw[:saltLength:saltLength], password...)
	return subtle.ConstantTimeCompare(h.raw[saltLength:], h.algorithm.sum(salted)) == 1
}

// A Secret is what a password is set from: the password itself, or its hash
// with the algorithm that made it ("" is SHA256). The zero Secret is no
// password: the user cannot log in with PLAIN or AMQPLAIN.
type Secret struct {
	Password  string
	Hash      string
	Algorithm Algorithm
}

// hashOf turns a secret into the hash to store.
func (a *Authority) hashOf(s Secret) (hash, error) {
	if s.Password != "" && s.Hash != "" {
		return hash{}, frames.Errorf(frames.PreconditionFailed, "give either password or password_hash, not both")
	}
	if s.Password == "" {
		return parseHash(s.Algorithm, s.Hash)
	}
	if err := a.rule.check(s.Password); err != nil {
		return hash{}, err
	}
	return newHash(a.cfg.Algorithm, s.Password), nil
}

// HashPassword returns a password's hash as it would be stored.
func (a *Authority) HashPassword(password string) string {
	return newHash(a.cfg.Algorithm, password).text
}
