package message

import "testing"

func TestParseExpiration(t *testing.T) {
	for _, tt := range []struct {
		s    string
		want int64
		err  string
	}{
		{"0", 0, ""},
		{"5", 5, ""},
		{"+5", 5, ""},
		{"315360000000", 315360000000, ""},
		{"abc", 0, "invalid expiration 'abc': no_integer"},
		{"", 0, "invalid expiration '': no_integer"},
		{" 5", 0, "invalid expiration ' 5': no_integer"},
		{"-", 0, "invalid expiration '-': no_integer"},
		{"--1", 0, "invalid expiration '--1': no_integer"},
		{"1.5", 0, `invalid expiration '1.5': {leftover_string,".5"}`},
		{"5\n", 0, "invalid expiration '5\n': {leftover_string,\"\\n\"}"},
		{"5\xff", 0, "invalid expiration '5ÿ': {leftover_string,\"ÿ\"}"},
		{"5€", 0, "invalid expiration '5€': {leftover_string,[226,130,172]}"},
		{"10s", 0, `invalid expiration '10s': {leftover_string,"s"}`},
		{"-1", 0, "invalid expiration '-1': {value_negative,-1}"},
		{"315360000001", 0, "invalid expiration '315360000001': {value_too_large,315360000001}"},
		{"99999999999999999999", 0, "invalid expiration '99999999999999999999': {value_too_large,99999999999999999999}"},
		{"-99999999999999999999", 0, "invalid expiration '-99999999999999999999': {value_negative,-99999999999999999999}"},
	} {
		got, err := ParseExpiration(tt.s)
		text := ""
		if err != nil {
			text = err.Error()
		}
		if got != tt.want || text != tt.err {
			t.Errorf("ParseExpiration(%q) = %d, %q; want %d, %q", tt.s, got, text, tt.want, tt.err)
		}
	}
}

func FuzzParseExpiration(f *testing.F) {
	for _, s := range []string{"", "60000", "+5", "-1", "--1", "1.5", "315360000001"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if ttl, err := ParseExpiration(s); ttl < 0 || ttl > maxTTL || err != nil && ttl != 0 {
			t.Errorf("ParseExpiration(%q) = %d, %v", s, ttl, err)
		}
	})
}
