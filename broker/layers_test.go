package broker

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/leveretmq/leveret"

// A layer is one package's place in the picture of docs/architecture.md. An
// import goes down; the exceptions are what a rule says.
type layer struct {
	level int
	// may names the packages of the same level that may be imported.
	may []string
	// only, if not nil, names all packages of the module that may be imported.
	only []string
	why  string
}

// layers is the table of docs/architecture.md.
var layers = map[string]layer{
	"frames":  {level: 0, only: []string{}, why: "frames is pure functions over bytes: it imports nothing of ours"},
	"pattern": {level: 0, only: []string{}, why: "pattern is regular expressions: it knows nothing of brokers"},
	"config":  {level: 0, may: []string{"pattern"}, only: []string{"pattern"}, why: "config is a plain struct: it imports nothing of ours but what checks a value"},
	"message": {level: 0, only: []string{"frames"}, why: "message is the noun all layers pass along: it knows the wire and nothing else"},

	"persistence":           {level: 1, only: []string{"message"}, why: "persistence knows bytes, and message for the Receipt only"},
	"persistence/storetest": {level: 1, may: []string{"persistence"}, why: "storetest is the contract of stores"},
	"queue":                 {level: 1, may: []string{"persistence"}, why: "queue is contracts; Env hands the store on to the types of queue"},
	"queue/queuetest":       {level: 1, may: []string{"queue", "persistence"}, why: "queuetest is the contract of queues"},
	"queue/record":          {level: 1, may: []string{"queue", "persistence"}, why: "record is how types of queue write a message into a log"},
	"queue/dispatch":        {level: 1, may: []string{"queue"}, why: "dispatch is the consumers of one queue, whatever its type"},
	"queue/retry":           {level: 1, may: []string{"queue", "persistence"}, why: "retry is what types of queue know of messages that come back"},
	"queue/dedup":           {level: 1, may: []string{"queue", "persistence"}, why: "dedup is the ids of the messages in one queue, whatever its type"},
	"queue/classic":         {level: 1, may: []string{"queue", "queue/record", "queue/dispatch", "queue/dedup", "queue/retry", "persistence"}, why: "a type of queue can be read without the others"},
	"queue/quorum":          {level: 1, may: []string{"queue", "queue/record", "queue/dispatch", "queue/dedup", "queue/retry", "persistence"}, why: "a type of queue can be read without the others"},
	"queue/stream":          {level: 1, may: []string{"queue", "persistence"}, why: "a type of queue can be read without the others"},

	"exchange": {level: 2, only: []string{"frames", "message", "queue"}, why: "exchange imports queue for the type Queue only"},

	"vhost": {level: 3, only: []string{"frames", "message", "pattern", "queue", "queue/record", "queue/dedup", "persistence", "exchange"}, why: "vhost gets the types of queue as a table of factories and does not know them"},
	"auth":  {level: 3, only: []string{"frames", "pattern", "persistence"}, why: "auth is security in one place: it knows names, not topology"},

	"amqp":       {level: 4, why: "front doors never import one another"},
	"management": {level: 4, why: "front doors never import one another"},
	"bench":      {level: 4, only: []string{"frames"}, why: "bench is a client of any broker: it knows the wire and nothing of ours"},

	"broker":      {level: 5, why: "composition may import anything but cmd"},
	"migrate":     {level: 5, only: []string{}, why: "migrate sees brokers from outside, as any client: the source may be RabbitMQ"},
	"cmd/leveret": {level: 6, why: "cmd is flags in, calls out"},
}

// outsiders are modules that only some packages may import, and why.
var outsiders = []struct {
	prefix string
	may    []string
	why    string
}{
	{"github.com/dgraph-io/badger", []string{"persistence"}, "only persistence knows Badger, so that it can be replaced and faked"},
	{"github.com/spf13/", []string{"cmd/leveret"}, "commands and flags are cmd's"},
	{"github.com/rabbitmq/amqp091-go", []string{"migrate", "cmd/leveret"}, "the client library is for what acts as a client, and for tests"},
	{"testing", []string{"persistence/storetest", "queue/queuetest"}, "testing is for tests"},
	{"go.uber.org/zap", []string{"persistence", "queue", "queue/classic", "queue/quorum", "queue/queuetest", "queue/stream", "vhost", "auth", "amqp", "management", "broker", "cmd/leveret"}, "the leaves do no I/O and have nothing to log"},
}

func TestImportsGoDown(t *testing.T) {
	packages := importsOfModule(t)
	for pkg := range layers {
		if packages[pkg] == nil {
			t.Errorf("there is no package %s: take it out of this table", pkg)
		}
	}
	for pkg, imports := range packages {
		rule, known := layers[pkg]
		if !known {
			t.Errorf("%s has no layer: give it a place in docs/architecture.md and in this table", pkg)
			continue
		}
		for imported, file := range imports {
			if reason := violation(pkg, rule, imported); reason != "" {
				t.Errorf("%s imports %s: %s", file, imported, reason)
			}
		}
	}
}

func TestLayersTable(t *testing.T) {
	for _, tt := range []struct {
		pkg, imports string
		ok           bool
	}{
		{"amqp", module + "/vhost", true},
		{"vhost", module + "/amqp", false},
		{"vhost", module + "/queue/classic", false},
		{"amqp", module + "/management", false},
		{"queue/classic", module + "/queue/stream", false},
		{"persistence", module + "/queue", false},
		{"message", module + "/frames", true},
		{"frames", module + "/message", false},
		{"vhost", "github.com/dgraph-io/badger/v4", false},
		{"amqp", "testing", false},
		{"amqp", "bytes", true},
	} {
		if got := violation(tt.pkg, layers[tt.pkg], tt.imports); (got == "") != tt.ok {
			t.Errorf("%s imports %s: %q, want allowed %v", tt.pkg, tt.imports, got, tt.ok)
		}
	}
}

// violation says why pkg must not import the path, "" if it may.
func violation(pkg string, rule layer, imported string) string {
	for _, o := range outsiders {
		if strings.HasPrefix(imported, o.prefix) && !slices.Contains(o.may, pkg) {
			return o.why
		}
	}
	ours, ok := strings.CutPrefix(imported, module+"/")
	if !ok {
		return ""
	}
	target, known := layers[ours]
	switch {
	case !known:
		return "it has no layer"
	case rule.only != nil && !slices.Contains(rule.only, ours):
		return rule.why
	case rule.only != nil, target.level < rule.level, slices.Contains(rule.may, ours):
		return ""
	}
	return rule.why
}

// importsOfModule reads the imports of all files that are not tests: for each
// package what it imports, and one file that does.
func importsOfModule(t *testing.T) map[string]map[string]string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]map[string]string{}
	err = filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && file != root && (strings.HasPrefix(d.Name(), ".") || d.Name() == "node_modules" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		return readImports(file, filepath.ToSlash(rel), found)
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func readImports(file, rel string, found map[string]map[string]string) error {
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return err
	}
	pkg := path.Dir(rel)
	if found[pkg] == nil {
		found[pkg] = map[string]string{}
	}
	for _, spec := range f.Imports {
		found[pkg][strings.Trim(spec.Path.Value, `"`)] = rel
	}
	return nil
}
