package broker

import (
	"bytes"
	"encoding/pem"
	"strings"
	"testing"
)

// The same key as openssl pkcs8 writes it: plain, and with the password sesame.
const plainKey = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgIv41hnCmRyJRDbAM
LmBrdD9RPdzTZFPftl7fyujSKwWhRANCAATQnmqH/SVnW5mL/vxQBoEyCMKkrJYc
UF8VZ1oYp+BkPr0MANVu61UiHE6iaZZ2g2quMzdp9TJukC0u9M9T7hYi
-----END PRIVATE KEY-----
`

const scryptKey = `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHkME8GCSqGSIb3DQEFDTBCMCEGCSsGAQQB2kcECzAUBAgrsLXa2X9MNQICQAAC
AQgCAQEwHQYJYIZIAWUDBAEqBBA3GfCc2XAWJ8A0t7o/oNivBIGQEj476lPjQYP4
lfuDsfVLoyHuJLiDbIdhJTFFmFVIxvt5aEPWV6jSpKjFZTN0LcbslE/kLop8WO39
Qs5xEhBADf6oGHzhXR71kpS8KOyfLhYwdqVmNshQHtWzPn1HmbOu6lUOPQpnf5ST
MtvQcyxEuMfPwjA079jAEWx8NKkFVwbdiKMt9p608r57ddOvtxs2
-----END ENCRYPTED PRIVATE KEY-----
`

var encryptedKeys = []struct{ name, text string }{
	{"AES-256, HMAC-SHA-256", `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAjpu4MxuyJc1QICCAAw
DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEENtsmmUMkpPJp/yIwUCeJDsEgZD4
uzZykOftzJM0OycExVFIMNIPJowuMBN4Z7+WtXt4fUfVIF2PTM1y3uM9w10kehQY
mKR5ESZbRWlGs8oNY5eUt0FtCHy0/DVYoSmvCxJNHUPLnZN31e+Uz7YNMDH7Siek
PnfUaEegNMGLjV1BlEeBTHsVTMmy7XTigJMJt1z32MJcdY4Zw6c5RQIPxCtO1ZE=
-----END ENCRYPTED PRIVATE KEY-----
`},
	{"AES-128, HMAC-SHA-1", `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHeMEkGCSqGSIb3DQEFDTA8MBsGCSqGSIb3DQEFDDAOBAj0jk7zVn0AbwICCAAw
HQYJYIZIAWUDBAECBBAwGCx7wIJhkh1pS3HXUwSSBIGQUDloPBn8qXbZgWIn1+XY
Yv7Stf8os9psNaBA1Ioo79J3c3isO6U7SdYO+/jjkTPoB7pIB9JGId/GzC1wTvAp
v+/QSbrg+KCPxwOSKTKFt2OWOkfY0z1N9joHEXCaXU2mTyf6Q+sfsqjHUoHjIhUF
o9P7/06rCJg4lSaR54BTR+L6vEKGSCx5OZUF6qb1XX+C
-----END ENCRYPTED PRIVATE KEY-----
`},
	{"AES-192, HMAC-SHA-512", `-----BEGIN ENCRYPTED PRIVATE KEY-----
MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAgm7KX7MDi9cQICCAAw
DAYIKoZIhvcNAgsFADAdBglghkgBZQMEARYEEHmlHvgYmkKpkQ8wkUp/mGMEgZB2
RbKR0BnvAq1qqnOe2mdxei7lGu7Ml3Nm4eBOzDzzB93B/wti0R0RgTcUr7ETRC7M
ecQDKpC7parnS7GMTD6AhArkR4c4xSwTFnXEK8NKxsyc1jnRY/SLkUs9ouwXJGwC
V7IHR2fTv6fknC4ChUtV+n/kYINr9hQSg4uzhtpukchbiHc1nGRgSm7S6+0D0jA=
-----END ENCRYPTED PRIVATE KEY-----
`},
}

func TestEncryptedKeys(t *testing.T) {
	plain, _ := pem.Decode([]byte(plainKey))
	for _, tt := range encryptedKeys {
		got, err := decrypt([]byte(tt.text), "sesame")
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if block, _ := pem.Decode(got); block == nil || block.Type != "PRIVATE KEY" || !bytes.Equal(block.Bytes, plain.Bytes) {
			t.Errorf("%s: got %s", tt.name, got)
		}
		if _, err := decrypt([]byte(tt.text), "wrong"); err == nil || !strings.Contains(err.Error(), "not the right one") {
			t.Errorf("%s with a wrong password: error %v", tt.name, err)
		}
		if _, err := decrypt([]byte(tt.text), ""); err == nil || !strings.Contains(err.Error(), "ssl_options.password") {
			t.Errorf("%s without a password: error %v", tt.name, err)
		}
	}
	if _, err := decrypt([]byte(scryptKey), "sesame"); err == nil || !strings.Contains(err.Error(), "openssl pkcs8") {
		t.Errorf("scrypt: error %v, want one that says how to write the key anew", err)
	}
}

// Whatever the file has, there is a key or an error, and no panic.
func FuzzDecryptPKCS8(f *testing.F) {
	for _, tt := range encryptedKeys {
		block, _ := pem.Decode([]byte(tt.text))
		f.Add(block.Bytes)
	}
	f.Fuzz(func(t *testing.T, der []byte) {
		if bytes.Contains(der, []byte{2, 3}) || bytes.Contains(der, []byte{2, 4}) {
			return // a number of iterations that takes long
		}
		if plain, err := decryptPKCS8(der, []byte("sesame")); err == nil && len(plain) >= len(der) {
			t.Errorf("%d bytes of %d", len(plain), len(der))
		}
	})
}
