package broker

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/sha512"
	"crypto/x509/pkix"
	"encoding/asn1"
	"errors"
	"hash"
)

// An encryptedKey is a key of PKCS #8 with a password (RFC 5958).
type encryptedKey struct {
	Algorithm pkix.AlgorithmIdentifier
	Data      []byte
}

// schemeParams are those of PBES2, kdfParams of PBKDF2 (RFC 8018, appendix A).
type schemeParams struct {
	KeyDerivation pkix.AlgorithmIdentifier
	Encryption    pkix.AlgorithmIdentifier
}

type kdfParams struct {
	Salt       []byte
	Iterations int
	KeyLength  int                      `asn1:"optional"`
	PRF        pkix.AlgorithmIdentifier `asn1:"optional"`
}

const (
	oidPBES2  = "1.2.840.113549.1.5.13"
	oidPBKDF2 = "1.2.840.113549.1.5.12"
	// maxIterations bounds the work that a file can ask for: some seconds.
	maxIterations = 10_000_000
)

var (
	errKeyForm     = errors.New("it is not a key of PKCS #8")
	errKeyScheme   = errors.New("its kind of encryption is not understood, only PBES2 with PBKDF2 and AES is: write it anew (openssl pkcs8 -topk8 -in KEY -out NEW)")
	errKeyPassword = errors.New("the password is not the right one")
)

// decryptPKCS8 takes the password off a key in DER and returns the plain one.
func decryptPKCS8(der, password []byte) ([]byte, error) {
	var key encryptedKey
	if rest, err := asn1.Unmarshal(der, &key); err != nil || len(rest) > 0 {
		return nil, errKeyForm
	}
	var scheme schemeParams
	if key.Algorithm.Algorithm.String() != oidPBES2 {
		return nil, errKeyScheme
	}
	if _, err := asn1.Unmarshal(key.Algorithm.Parameters.FullBytes, &scheme); err != nil {
		return nil, errKeyForm
	}
	block, iv, err := scheme.cipher(password)
	if err != nil {
		return nil, err
	}
	if len(key.Data) == 0 || len(key.Data)%block.BlockSize() != 0 {
		return nil, errKeyForm
	}
	plain := make([]byte, len(key.Data))
	cipher.NewCBCDecrypter(block, iv).CryptBlocks(plain, key.Data)
	return unpad(plain, block.BlockSize())
}

// cipher makes the key and with it the cipher.
func (s *schemeParams) cipher(password []byte) (cipher.Block, []byte, error) {
	length := map[string]int{ // AES in CBC mode
		"2.16.840.1.101.3.4.1.2": 16, "2.16.840.1.101.3.4.1.22": 24, "2.16.840.1.101.3.4.1.42": 32,
	}[s.Encryption.Algorithm.String()]
	if length == 0 || s.KeyDerivation.Algorithm.String() != oidPBKDF2 {
		return nil, nil, errKeyScheme
	}
	var iv []byte
	if _, err := asn1.Unmarshal(s.Encryption.Parameters.FullBytes, &iv); err != nil || len(iv) != aes.BlockSize {
		return nil, nil, errKeyForm
	}
	var kdf kdfParams
	if _, err := asn1.Unmarshal(s.KeyDerivation.Parameters.FullBytes, &kdf); err != nil {
		return nil, nil, errKeyForm
	}
	prf := hashOf(kdf.PRF.Algorithm)
	if prf == nil || kdf.Iterations < 1 || kdf.Iterations > maxIterations {
		return nil, nil, errKeyScheme
	}
	derived, err := pbkdf2.Key(prf, string(password), kdf.Salt, kdf.Iterations, length)
	if err != nil {
		return nil, nil, err
	}
	block, err := aes.NewCipher(derived)
	return block, iv, err
}

// hashOf is the hash of a pseudo-random function; without one it is SHA-1 (RFC
// 8018, appendix A.2).
func hashOf(prf asn1.ObjectIdentifier) func() hash.Hash {
	switch prf.String() {
	case "", "1.2.840.113549.2.7":
		return sha1.New
	case "1.2.840.113549.2.9":
		return sha256.New
	case "1.2.840.113549.2.10":
		return sha512.New384
	case "1.2.840.113549.2.11":
		return sha512.New
	}
	return nil
}

// unpad takes the padding off. A wrong password leaves a wrong one, mostly; if
// not, what is left is no key.
func unpad(plain []byte, size int) ([]byte, error) {
	n := int(plain[len(plain)-1])
	if n == 0 || n > size || n > len(plain) {
		return nil, errKeyPassword
	}
	for _, b := range plain[len(plain)-n:] {
		if int(b) != n {
			return nil, errKeyPassword
		}
	}
	return plain[:len(plain)-n], nil
}
