package bench

import (
	"reflect"
	"testing"
	"time"

	"github.com/leveretmq/leveret/frames"
)

func TestParseSizes(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Sizes // nil is an error
		back string
	}{
		{"100", Sizes{{100, 100, 1}}, "100"},
		{"0", Sizes{{0, 0, 1}}, "0"},
		{"64K", Sizes{{65536, 65536, 1}}, "65536"},
		{"1MiB", Sizes{{1 << 20, 1 << 20, 1}}, "1048576"},
		{"16B", Sizes{{16, 16, 1}}, "16"},
		{"100, 1K:3", Sizes{{100, 100, 1}, {1024, 1024, 3}}, "100,1024:3"},
		{"100-2K:2,7", Sizes{{100, 2048, 2}, {7, 7, 1}}, "100-2048:2,7"},
		{"", nil, ""},
		{"-1", nil, ""},
		{"10-", nil, ""},
		{"20-10", nil, ""},
		{"10:0", nil, ""},
		{"10:1:2", nil, ""},
		{"1G", nil, ""},
		{"513M", nil, ""},
		{"1,,2", nil, ""},
	} {
		got, err := ParseSizes(tt.text)
		if !reflect.DeepEqual(got, tt.want) || (err == nil) != (tt.want != nil) {
			t.Errorf("ParseSizes(%q) = %v, %v, want %v", tt.text, got, err, tt.want)
		}
		if err == nil && got.String() != tt.back {
			t.Errorf("ParseSizes(%q) is written as %q, want %q", tt.text, got, tt.back)
		}
	}
}

func TestParseRates(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Rates
		ok   bool
	}{
		{"0", nil, true},
		{"1000", Rates{{1000, 0}}, true},
		{"2.5k", Rates{{2500, 0}}, true},
		{"1000:30s,5k:10s", Rates{{1000, 30 * time.Second}, {5000, 10 * time.Second}}, true},
		{"0:1s,100:1s", Rates{{0, time.Second}, {100, time.Second}}, true},
		{"0:1s", nil, false},      // never publishes
		{"1000,5000", nil, false}, // for how long?
		{"1000:1", nil, false},
		{"1000:-1s", nil, false},
		{"1000:1us", nil, false},
		{"-5", nil, false},
		{"NaN", nil, false},
		{"Inf", nil, false},
		{"1e99", nil, false},
		{"fast", nil, false},
		{"", nil, false},
	} {
		got, err := ParseRates(tt.text)
		if !reflect.DeepEqual(got, tt.want) || (err == nil) != tt.ok {
			t.Errorf("ParseRates(%q) = %v, %v, want %v, ok %v", tt.text, got, err, tt.want, tt.ok)
		}
	}
}

func TestParseArguments(t *testing.T) {
	got, err := ParseArguments("x-max-length=1000, x-overflow=reject-publish,x-single-active-consumer=true")
	want := frames.Table{{Name: "x-max-length", Value: int64(1000)}, {Name: "x-overflow", Value: "reject-publish"}, {Name: "x-single-active-consumer", Value: true}}
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	for _, text := range []string{"x-max-length", "=1", ","} {
		if got, err := ParseArguments(text); err == nil {
			t.Errorf("ParseArguments(%q) = %v, want an error", text, got)
		}
	}
}

func TestParseBroker(t *testing.T) {
	for _, tt := range []struct {
		uri, address, vhost, user, password string // address "" is an error
		tls                                 bool
	}{
		{"amqp://h", "h:5672", "/", "guest", "guest", false},
		{"amqp://u:p@h:1/v", "h:1", "v", "u", "p", false},
		{"amqp://u:p%40@[::1]/%2f", "[::1]:5672", "/", "u", "p@", false},
		{"amqps://h/", "h:5671", "/", "guest", "guest", true},
		{"amqps://h?verify=verify_none", "h:5671", "/", "guest", "guest", true},
		{"amqp://h?verify=verify_none", "", "", "", "", false},
		{"amqps://h?verify=maybe", "", "", "", "", false},
		{"amqps://h?cacertfile=/nowhere", "", "", "", "", false},
		{"amqps://h?beat=1", "", "", "", "", false},
		{"http://h", "", "", "", "", false},
		{"amqp://", "", "", "", "", false},
		{"h:5672", "", "", "", "", false},
	} {
		b, err := ParseBroker("", tt.uri)
		if err != nil {
			b = &Broker{}
		}
		if b.Address != tt.address || b.VHost != tt.vhost || b.user != tt.user || b.password != tt.password || (b.TLS != nil) != tt.tls {
			t.Errorf("ParseBroker(%q) = %+v, %v", tt.uri, b, err)
		}
	}
}

// FuzzSettings reads any text as any setting. What is accepted must be written
// so that it is read as the same again.
func FuzzSettings(f *testing.F) {
	for _, s := range Settings() {
		f.Add(s.Name, s.Text(NewScenario()))
	}
	f.Add("size", "100-2K:2,7")
	f.Add("rate", "0:1s,2.5k:10s")
	f.Add("queue-args", "a=1,b=true,c=x")
	f.Fuzz(func(t *testing.T, name, text string) {
		for _, s := range Settings() {
			if s.Name != name {
				continue
			}
			first, second := NewScenario(), NewScenario()
			if s.Set(first, text) != nil {
				return
			}
			written := s.Text(first)
			if err := s.Set(second, written); err != nil && written != "" {
				t.Fatalf("%s %q is written as %q, which is refused: %v", name, text, written, err)
			}
			if again := s.Text(second); written != "" && again != written {
				t.Fatalf("%s %q is written as %q, then as %q", name, text, written, again)
			}
			_ = first.Validate() // must not panic
		}
	})
}

// FuzzParseScenarios reads any bytes as a scenario file.
func FuzzParseScenarios(f *testing.F) {
	for _, name := range StandardNames() {
		source, err := StandardSource(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(source)
	}
	f.Add([]byte("a: &a [*a]\n---\nsize: {a: b}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		all, err := ParseScenarios("fuzz.yaml", data)
		if err == nil && len(all) == 0 {
			t.Fatal("neither a scenario nor an error")
		}
		for _, sc := range all {
			if err := sc.Validate(); err != nil {
				t.Fatalf("valid, then not: %v", err)
			}
		}
	})
}
