package broker

import "testing"

func TestPatternsOfVHostsLookAround(t *testing.T) {
	for name, want := range map[string]bool{"dev": true, "production": false} {
		if got := matches("^(?!prod).*", name); got != want {
			t.Errorf("%s matches: %t, want %t", name, got, want)
		}
	}
}
