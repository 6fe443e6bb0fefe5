package auth

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestVHostAccess(t *testing.T) {
	a := newAuthority(t, Config{})
	joe := User{Name: "joe"}
	refused := "NOT_ALLOWED - access to vhost '/' refused for user 'joe'"
	wantReply(t, a.VHostAccess(joe, "/"), refused)
	permit(t, a, "joe", "/", "", "", "") // no rights, but access
	wantReply(t, a.VHostAccess(joe, "/"), "")
	wantReply(t, a.VHostAccess(joe, "other"), "NOT_ALLOWED - access to vhost 'other' refused for user 'joe'")
	if existed, err := a.ClearPermissions("joe", "/"); !existed || err != nil {
		t.Errorf("existed %v, %v", existed, err)
	}
	wantReply(t, a.VHostAccess(joe, "/"), refused)
	permitTopic(t, a, "joe", "/", "x", ".*", ".*") // gives no access by itself
	wantReply(t, a.VHostAccess(joe, "/"), refused)
}

func TestCheck(t *testing.T) {
	for _, tt := range []struct {
		configure, write, read string
		r                      Resource
		p                      Permission
		want                   string
	}{
		{".*", ".*", ".*", Resource{Queue, "q"}, Configure, ""},
		{"^c", "^w", "^r", Resource{Queue, "x"}, Configure, "ACCESS_REFUSED - configure access to queue 'x' in vhost '/' refused for user 'joe'"},
		{"^c", "^w", "^r", Resource{Queue, "cx"}, Configure, ""},
		{"^c", "^w", "^r", Resource{Exchange, "cx"}, Write, "ACCESS_REFUSED - write access to exchange 'cx' in vhost '/' refused for user 'joe'"},
		{"^c", "^w", "^r", Resource{Exchange, "wx"}, Write, ""},
		{"^c", "^w", "^r", Resource{Queue, "wx"}, Read, "ACCESS_REFUSED - read access to queue 'wx' in vhost '/' refused for user 'joe'"},
		{"^c", "^w", "^r", Resource{Queue, "rx"}, Read, ""},
		{"", "ob", "", Resource{Queue, "foobar"}, Write, ""}, // searched, not anchored
		{"", "", "", Resource{Queue, "q"}, Configure, "ACCESS_REFUSED - configure access to queue 'q' in vhost '/' refused for user 'joe'"},
		{"", "", "", Resource{Queue, ""}, Configure, ""}, // "" is ^$
		{"", "^$", "", Resource{Exchange, ""}, Write, "ACCESS_REFUSED - write access to exchange 'amq.default' in vhost '/' refused for user 'joe'"},
		{"", `^amq\.default$`, "", Resource{Exchange, ""}, Write, ""},
		{"", `^amq\.default$`, "", Resource{Exchange, "amq.default"}, Write, ""},
		{"", `^(a|b)$`, "", Resource{Queue, "b"}, Write, ""},
		{"", `^(a|b)$`, "", Resource{Queue, "bb"}, Write, "ACCESS_REFUSED - write access to queue 'bb' in vhost '/' refused for user 'joe'"},
	} {
		a := newAuthority(t, Config{})
		permit(t, a, "joe", "/", tt.configure, tt.write, tt.read)
		wantReply(t, a.Check("joe", "/", tt.r, tt.p), tt.want)
		wantReply(t, a.Grants("joe", "/").Check(tt.r, tt.p), tt.want)
	}
}

func TestCheckWithoutPermissions(t *testing.T) {
	a := newAuthority(t, Config{})
	permit(t, a, "joe", "v", ".*", ".*", ".*")
	wantReply(t, a.Check("joe", "/", Resource{Queue, ""}, Read), "ACCESS_REFUSED - read access to queue '' in vhost '/' refused for user 'joe'")
	wantReply(t, a.Check("nobody", "v", Resource{Queue, "q"}, Read), "ACCESS_REFUSED - read access to queue 'q' in vhost 'v' refused for user 'nobody'")
}

func TestCheckTopic(t *testing.T) {
	a := newAuthority(t, Config{})
	putUser(t, a, "a.b", Secret{})
	putUser(t, a, ".*", Secret{})
	permitTopic(t, a, "joe", "v", "t", "^a", "^b")
	permitTopic(t, a, "joe", "v", "none", "", "")
	permitTopic(t, a, "joe", "v", "u", `^{username}\.{vhost}\.`, "{client_id}")
	permitTopic(t, a, "a.b", "v", "u", "^{username}$", "x{username}y")
	permitTopic(t, a, ".*", "v", "u", "^{username}", ".*")
	for _, tt := range []struct {
		user, vhost, exchange string
		p                     Permission
		key, want             string
	}{
		{"joe", "v", "t", Write, "a.x", ""},
		{"joe", "v", "t", Write, "b.c", "ACCESS_REFUSED - write access to topic 'b.c' in exchange 't' in vhost 'v' refused for user 'joe'"},
		{"joe", "v", "t", Read, "b.c", ""},
		{"joe", "v", "t", Read, "a.#", "ACCESS_REFUSED - read access to topic 'a.#' in exchange 't' in vhost 'v' refused for user 'joe'"},
		{"joe", "v", "other", Write, "b.c", ""}, // no entry: allowed
		{"joe", "/", "t", Write, "b.c", ""},
		{"ann", "v", "t", Write, "b.c", ""},
		{"joe", "v", "none", Write, "", ""},
		{"joe", "v", "none", Read, "a", "ACCESS_REFUSED - read access to topic 'a' in exchange 'none' in vhost 'v' refused for user 'joe'"},
		{"joe", "v", "u", Write, "joe.v.x", ""},
		{"joe", "v", "u", Write, "ann.v.x", "ACCESS_REFUSED - write access to topic 'ann.v.x' in exchange 'u' in vhost 'v' refused for user 'joe'"},
		{"joe", "v", "u", Read, "{client_id}", ""}, // means something to MQTT only
		{"a.b", "v", "u", Write, "a.b", ""},
		{"a.b", "v", "u", Write, "aXb", "ACCESS_REFUSED - write access to topic 'aXb' in exchange 'u' in vhost 'v' refused for user 'a.b'"},
		{"a.b", "v", "u", Read, "-xa.by-", ""},
		{".*", "v", "u", Write, "any", "ACCESS_REFUSED - write access to topic 'any' in exchange 'u' in vhost 'v' refused for user '.*'"},
		{".*", "v", "u", Write, ".*.any", ""},
	} {
		wantReply(t, a.CheckTopic(tt.user, tt.vhost, tt.exchange, tt.p, tt.key), tt.want)
		wantReply(t, a.Grants(tt.user, tt.vhost).CheckTopic(tt.exchange, tt.p, tt.key), tt.want)
	}
}

func TestPermissionsThatAreRefused(t *testing.T) {
	a := newAuthority(t, Config{})
	set := func(user, vhost, configure, write, read string) error {
		_, err := a.SetPermissions(user, vhost, configure, write, read)
		return err
	}
	setTopic := func(user, exchange, write, read string) error {
		_, err := a.SetTopicPermissions(user, "/", exchange, write, read)
		return err
	}
	for _, tt := range []struct {
		err  error
		want string
	}{
		{set("no", "/", "", "", ""), "NOT_FOUND - no user 'no'"},
		{set("joe", "/", "*", "", ""), "PRECONDITION_FAILED - invalid regular expression '*': nothing to repeat at 0"},
		{set("joe", "/", "", "(", ""), "PRECONDITION_FAILED - invalid regular expression '(': missing ) at 1"},
		{set("joe", "\xff", "", "", ""), `PRECONDITION_FAILED - name "\xff" is not valid UTF-8`},
		{setTopic("no", "x", "", ""), "NOT_FOUND - no user 'no'"},
		{setTopic("joe", "x", "[", ""), "PRECONDITION_FAILED - invalid regular expression '[': missing terminating ] for character class at 1"},
		{setTopic("joe", "x", "", "a++"), "PRECONDITION_FAILED - invalid regular expression 'a++': possessive repetition is not supported: write (?>...) at 2"},
		{setTopic("joe", "\xff", "", ""), `PRECONDITION_FAILED - name "\xff" is not valid UTF-8`},
	} {
		wantReply(t, tt.err, tt.want)
	}
	if got := slices.Collect(a.Permissions("joe", "")); len(got) != 0 {
		t.Errorf("permissions are %+v, want none", got)
	}
}

// A name is no part of the expression, whatever it is and whatever the expression ignores.
func TestNamesInTopicPermissionsAreTakenLiterally(t *testing.T) {
	for name, other := range map[string]string{"#": "x", "a b": "ab", ".*": "x", "joe": "jim"} {
		a := newAuthority(t, Config{})
		putUser(t, a, name, Secret{Password: "secret"})
		if _, err := a.SetTopicPermissions(name, "/", "x", `(?x)^{username}\. (?!z)`, ".*"); err != nil {
			t.Fatal(err)
		}
		g := a.Grants(name, "/")
		if g.CheckTopic("x", Write, name+".k") != nil || g.CheckTopic("x", Write, other+".k") == nil || g.CheckTopic("x", Write, name+".z") == nil {
			t.Errorf("%q: own key %v, that of %q %v, one that is left out %v", name, g.CheckTopic("x", Write, name+".k"),
				other, g.CheckTopic("x", Write, other+".k"), g.CheckTopic("x", Write, name+".z"))
		}
	}
}

// Permissions are regular expressions of PCRE, as in RabbitMQ.
func TestPermissionsThatLookAround(t *testing.T) {
	a := newAuthority(t, Config{})
	if _, err := a.SetPermissions("joe", "/", `^(?!amq\.).*`, `(?<!\.dlq)$`, `^(a|b)\1+$`); err != nil {
		t.Fatal(err)
	}
	if _, err := a.SetTopicPermissions("joe", "/", "x", `^(?!{username}\.)`, ".*"); err != nil {
		t.Fatal(err)
	}
	g := a.Grants("joe", "/")
	for _, tt := range []struct {
		err  error
		want bool
	}{
		{g.Check(Resource{Kind: Queue, Name: "orders"}, Configure), true},
		{g.Check(Resource{Kind: Queue, Name: "amq.topic"}, Configure), false},
		{g.Check(Resource{Kind: Queue, Name: "orders"}, Write), true},
		{g.Check(Resource{Kind: Queue, Name: "orders.dlq"}, Write), false},
		{g.Check(Resource{Kind: Queue, Name: "bb"}, Read), true},
		{g.Check(Resource{Kind: Queue, Name: "ab"}, Read), false},
		{g.CheckTopic("x", Write, "jim.a"), true},
		{g.CheckTopic("x", Write, "joe.a"), false},
	} {
		if (tt.err == nil) != tt.want {
			t.Errorf("allowed is %v (%v), want %v", tt.err == nil, tt.err, tt.want)
		}
	}
}

func TestListPermissions(t *testing.T) {
	a := open(t, Config{NoDefaultUser: true}, newFakeStore())
	for _, user := range []string{"b", "a"} {
		putUser(t, a, user, Secret{})
		for _, vhost := range []string{"w", "v"} {
			permit(t, a, user, vhost, "", user, vhost)
			permitTopic(t, a, user, vhost, "y", user, vhost)
			permitTopic(t, a, user, vhost, "x", user, vhost)
		}
	}
	a.Grants("a", "nowhere") // a handle alone is no permission
	row := func(vhost, user string) Permissions { return Permissions{user, vhost, "", user, vhost} }
	for _, tt := range []struct {
		user, vhost string
		want        []Permissions
	}{
		{"", "", []Permissions{row("v", "a"), row("v", "b"), row("w", "a"), row("w", "b")}},
		{"a", "", []Permissions{row("v", "a"), row("w", "a")}},
		{"", "w", []Permissions{row("w", "a"), row("w", "b")}},
		{"b", "w", []Permissions{row("w", "b")}},
		{"c", "", nil},
	} {
		if got := slices.Collect(a.Permissions(tt.user, tt.vhost)); !slices.Equal(got, tt.want) {
			t.Errorf("%q %q: %+v, want %+v", tt.user, tt.vhost, got, tt.want)
		}
	}
	want := []TopicPermissions{{"a", "w", "x", "a", "w"}, {"a", "w", "y", "a", "w"}}
	if got := slices.Collect(a.TopicPermissions("a", "w")); !slices.Equal(got, want) {
		t.Errorf("topic permissions: %+v, want %+v", got, want)
	}
	for range a.TopicPermissions("", "") {
		break
	}
	for range a.Permissions("", "") {
		break
	}
}

func TestSetAndClearSayWhatWasThere(t *testing.T) {
	a := newAuthority(t, Config{})
	for i, want := range []bool{true, false} {
		if created, err := a.SetPermissions("joe", "/", "", "", ""); created != want || err != nil {
			t.Errorf("set %d: created %v, %v", i, created, err)
		}
		if created, err := a.SetTopicPermissions("joe", "/", "x", "", ""); created != want || err != nil {
			t.Errorf("set topic %d: created %v, %v", i, created, err)
		}
	}
	for i, want := range []bool{true, false} {
		if existed, err := a.ClearPermissions("joe", "/"); existed != want || err != nil {
			t.Errorf("clear %d: existed %v, %v", i, existed, err)
		}
		if existed, err := a.ClearTopicPermissions("joe", "/", "x"); existed != want || err != nil {
			t.Errorf("clear topic %d: existed %v, %v", i, existed, err)
		}
	}
	if existed, err := a.ClearPermissions("nobody", "/"); existed || err != nil {
		t.Errorf("of nobody: existed %v, %v", existed, err)
	}
}

func TestDropVHost(t *testing.T) {
	store := newFakeStore()
	a := open(t, Config{}, store)
	putUser(t, a, "joe", Secret{})
	permit(t, a, "joe", "v", ".*", ".*", ".*")
	permitTopic(t, a, "joe", "v", "x", ".*", ".*")
	permitTopic(t, a, "joe", "v", "y", ".*", ".*")
	old := a.Grants("joe", "v")
	must(t, a.DropVHost("v"))
	if old.Granted() {
		t.Error("the handle still grants access")
	}
	want := []Permissions{{"guest", "/", ".*", ".*", ".*"}}
	if got := slices.Collect(a.Permissions("", "")); !slices.Equal(got, want) {
		t.Errorf("permissions are %+v, want %+v", got, want)
	}
	if got := slices.Collect(a.TopicPermissions("", "")); len(got) != 0 {
		t.Errorf("topic permissions are %+v", got)
	}
	if p, topics := len(store.data['p']), len(store.data['t']); p != 1 || topics != 0 {
		t.Errorf("%d permissions and %d topic permissions in the store, want 1 and 0", p, topics)
	}
}

func TestAHandleFollowsChanges(t *testing.T) {
	a := newAuthority(t, Config{})
	g := a.Grants("joe", "/") // before there is anything
	q := Resource{Queue, "q"}
	refused := "ACCESS_REFUSED - read access to queue 'q' in vhost '/' refused for user 'joe'"
	var seen []uint64
	step := func(change func(), want string) {
		t.Helper()
		before := g.Generation()
		change()
		if g.Generation() <= before || slices.Contains(seen, g.Generation()) {
			t.Errorf("generation %d after %d", g.Generation(), before)
		}
		seen = append(seen, g.Generation())
		wantReply(t, g.Check(q, Read), want)
	}
	wantReply(t, g.Check(q, Read), refused)
	step(func() { permit(t, a, "joe", "/", "", "", ".*") }, "")
	step(func() { permit(t, a, "joe", "/", "", "", "x") }, refused)
	step(func() { permitTopic(t, a, "joe", "/", "t", "^a", "") }, refused)
	wantReply(t, g.CheckTopic("t", Write, "b"), "ACCESS_REFUSED - write access to topic 'b' in exchange 't' in vhost '/' refused for user 'joe'")
	step(func() { _, _ = a.ClearTopicPermissions("joe", "/", "t") }, refused)
	wantReply(t, g.CheckTopic("t", Write, "b"), "")
	step(func() { permit(t, a, "joe", "/", "", "", "q") }, "")
	step(func() { _, _ = a.ClearPermissions("joe", "/") }, refused)
	step(func() { permit(t, a, "joe", "/", "", "", "q") }, "")
	step(func() { must(t, a.DeleteUser("joe")) }, refused)

	other := a.Grants("guest", "/")
	before := other.Generation()
	putUser(t, a, "ann", Secret{})
	permit(t, a, "ann", "/", "", "", "")
	if other.Generation() != before {
		t.Error("another user's change moved guest's generation")
	}
}

func TestPatternShapes(t *testing.T) {
	for expr, want := range map[string]expression{
		".*":             {shape: matchAll},
		"^.*":            {shape: matchAll},
		"(?s).*":         {shape: matchAll},
		"":               {shape: matchExact},
		"^$":             {shape: matchExact},
		"^":              {shape: matchPrefix},
		`^amq\.default$`: {shape: matchExact, literal: "amq.default"},
		`^a\.`:           {shape: matchPrefix, literal: "a."},
		"^app-.*":        {shape: matchPrefix, literal: "app-"},
		`^\Qa.b\E`:       {shape: matchPrefix, literal: "a.b"},
		"^.*$":           {shape: matchRegexp},
		"app":            {shape: matchRegexp},
		"(?i)^app":       {shape: matchRegexp},
		"^a|b":           {shape: matchRegexp},
		"^ab*":           {shape: matchRegexp},
		"^a.*b":          {shape: matchRegexp},
	} {
		got, err := compile(expr)
		got.re = nil
		if err != nil || got != want {
			t.Errorf("%q: %+v, %v, want %+v", expr, got, err, want)
		}
	}
}

// TestPatternsMatchAsRegexpDoes makes expressions and names at random.
func TestPatternsMatchAsRegexpDoes(t *testing.T) {
	pieces := []string{"^", "$", ".*", ".", "a", "b", `\.`, "ab", "(?i)", "A", "|", "a*", "[ab]", "(b)", "^$", `\n`, ".*?", "ü"}
	names := []string{"", "a", "b", "ab", "ba", "abab", "a.b", "A", "\n", "a\n", "\nb", "aü", "ü", ".", "bab.aü\nab"}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		var expr strings.Builder
		for range rng.IntN(6) {
			expr.WriteString(pieces[rng.IntN(len(pieces))])
		}
		p, err := compile(expr.String())
		source := expr.String()
		if source == "" {
			source = "^$"
		}
		re, wantErr := regexp.Compile(source)
		if (err != nil) != (wantErr != nil) {
			t.Fatalf("%q: %v, want %v", source, err, wantErr)
		}
		for _, name := range names {
			if err == nil && p.match(name) != re.MatchString(name) {
				t.Fatalf("%q on %q: %v, want %v", source, name, p.match(name), re.MatchString(name))
			}
		}
	}
}

func TestChecksWhilePermissionsChange(t *testing.T) {
	a := newAuthority(t, Config{})
	g := a.Grants("joe", "/")
	var writers, readers sync.WaitGroup
	stop := make(chan struct{})
	for range 2 {
		writers.Go(func() {
			for i := range 300 {
				// Either all three rights or none: a reader must not see a mix.
				expr := []string{".*", "^never$"}[i%2]
				permit(t, a, "joe", "/", expr, expr, expr)
				permitTopic(t, a, "joe", "/", "t", expr, expr)
				if i%10 == 0 {
					_, _ = a.ClearPermissions("joe", "/")
					_, _ = a.ClearTopicPermissions("joe", "/", "t")
					_ = a.SetLimit("joe", MaxChannels, i)
					_, _ = a.PutUser("joe", Secret{Password: "secret"}, nil)
				}
			}
		})
	}
	for range 2 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				_ = g.Check(Resource{Queue, "q"}, Read)
				_ = g.CheckTopic("t", Write, "k")
				_ = a.Check("joe", "/", Resource{Exchange, ""}, Write)
				_ = a.VHostAccess(User{Name: "joe"}, "/")
				_, _ = a.Limit("joe", MaxChannels)
				if _, err := a.Authenticate("joe", "secret", Credentials{}); err != nil {
					t.Error(err)
				}
				for range a.Permissions("", "") {
				}
				for range a.Users() {
				}
			}
		})
	}
	writers.Wait()
	permit(t, a, "joe", "/", "", "", "^q$")
	wantReply(t, g.Check(Resource{Queue, "q"}, Read), "")
	close(stop)
	readers.Wait()
}

// TestARememberedResultIsNeverStale keeps results as a channel does, and looks
// at them while permissions change.
func TestARememberedResultIsNeverStale(t *testing.T) {
	a := newAuthority(t, Config{})
	g := a.Grants("joe", "/")
	q := Resource{Queue, "q"}
	var wg sync.WaitGroup
	done := make(chan struct{})
	var generation uint64
	var allowed bool
	check := func() bool {
		if now := g.Generation(); now != generation {
			generation, allowed = now, g.Check(q, Read) == nil
		}
		return allowed
	}
	check()
	wg.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				check()
			}
		}
	})
	for range 500 {
		permit(t, a, "joe", "/", "", "", ".*")
		permit(t, a, "joe", "/", "", "", "")
	}
	permit(t, a, "joe", "/", "", "", "^q")
	close(done)
	wg.Wait()
	if !check() {
		t.Error("the last change was missed")
	}
}

func TestChecksDoNotAllocate(t *testing.T) {
	a := newAuthority(t, Config{})
	permit(t, a, "joe", "/", "^conf-", `^(a|b)\d+$`, ".*")
	permitTopic(t, a, "joe", "/", "t", "^a\\.", ".*")
	g := a.Grants("joe", "/")
	for name, check := range map[string]func() error{
		"all":        func() error { return g.Check(Resource{Queue, "orders"}, Read) },
		"prefix":     func() error { return g.Check(Resource{Queue, "conf-1"}, Configure) },
		"regexp":     func() error { return g.Check(Resource{Exchange, "a123"}, Write) },
		"topic":      func() error { return g.CheckTopic("t", Write, "a.b.c") },
		"by name":    func() error { return a.Check("joe", "/", Resource{Queue, "orders"}, Read) },
		"vhost":      func() error { return a.VHostAccess(User{Name: "joe"}, "/") },
		"generation": func() error { _ = g.Generation(); return nil },
	} {
		var err error
		if n := testing.AllocsPerRun(100, func() { err = check() }); n != 0 || err != nil {
			t.Errorf("%s: %v allocations, error %v", name, n, err)
		}
	}
}

func BenchmarkCheck(b *testing.B) {
	a := newAuthority(b, Config{})
	permit(b, a, "joe", "/", "^conf-.*", `^(a|b)\d+$`, ".*")
	g := a.Grants("joe", "/")
	for _, bm := range []struct {
		name string
		r    Resource
		p    Permission
	}{
		{"all", Resource{Queue, "orders"}, Read},
		{"prefix", Resource{Queue, "conf-orders"}, Configure},
		{"regexp", Resource{Queue, "a123"}, Write},
	} {
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if g.Check(bm.r, bm.p) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
	b.Run("by name", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if a.Check("joe", "/", Resource{Queue, "orders"}, Read) != nil {
				b.Fatal("refused")
			}
		}
	})
}

func BenchmarkAuthenticate(b *testing.B) {
	a := newAuthority(b, Config{})
	b.ReportAllocs()
	for b.Loop() {
		if _, err := a.Authenticate("joe", "secret", Credentials{}); err != nil {
			b.Fatal(err)
		}
	}
}
