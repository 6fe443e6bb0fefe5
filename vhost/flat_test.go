package vhost

import (
	"encoding/json"
	"reflect"
	"testing"
)

// likeJSON checks that a definition is read as encoding/json reads it, and says
// whether that was not needed.
func likeJSON[T any, P interface {
	*T
	flat
}](t *testing.T, b []byte) (read bool) {
	t.Helper()
	var got, want T
	read = decodeFlat(b, P(&got))
	err := json.Unmarshal(b, &want)
	switch {
	case !read:
		if json.Unmarshal(b, &got) != nil {
			return false
		}
	case err != nil:
		t.Errorf("%s is read, but it is no JSON: %v", b, err)
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s is read as %+v, want %+v", b, got, want)
	}
	return read
}

func flatQueue() *storedQueue {
	return &storedQueue{versioned{definitionVersion}, "/", 1<<64 - 1, "scale.queue.1", 17, true, []byte{0, 0, 0, 1, 2}, "guest", 1<<32 - 1, 1<<32 - 2}
}

func flatBinding() *storedBinding {
	return &storedBinding{versioned{definitionVersion}, "/", "x", 5, "q", 6, true, "a.*.#", []byte{1}, 7}
}

func TestDecodeFlat(t *testing.T) {
	if b := encode(flatQueue()); !likeJSON[storedQueue](t, b) {
		t.Errorf("%s is left to encoding/json", b)
	}
	if b := encode(&storedQueue{versioned: versioned{1}, VHost: "é", VHostID: 1, Name: "q", ID: 1}); !likeJSON[storedQueue](t, b) {
		t.Errorf("%s is left to encoding/json", b)
	}
	if b := encode(flatBinding()); !likeJSON[storedBinding](t, b) {
		t.Errorf("%s is left to encoding/json", b)
	}
	for _, b := range []string{
		``, `{`, `{}`, `{"v":1`, `{"v":1}x`, `{"v":1,}`, `{"v":01}`, `{"v":-1}`, `{"v":1.5}`, `{"v":"1"}`, `{"v":}`, `{"v" :1}`, `{"V":1}`,
		`{"name":"a\u003cb"}`, `{"name":5}`, `{"name":"a}`, "{\"name\":\"\xff\"}", "{\"name\":\"a\nb\"}", `{"name":null}`, `{"unknown":1}`,
		`{"auto_delete":false}`, `{"arguments":"!"}`, `{"log":4294967296}`, `{"places_log":4294967296}`, `{"id":18446744073709551616}`, `["v"]`,
	} {
		if decodeFlat([]byte(b), &storedQueue{}) {
			t.Errorf("%q is read", b)
		}
	}
}

// What encoding/json has to read still comes back after a restart.
func TestDefinitionsThatAreNotFlat(t *testing.T) {
	store := newFakeStore()
	v, _ := open(t, store).Get("/")
	for _, name := range []string{`<a"&\>`, "line sep", "\x01"} {
		declareQueue(t, v, QueueDeclare{Name: name, Durable: true})
		bindQueue(t, v, name, "amq.topic", name)
	}
	v, _ = open(t, store).Get("/")
	n := 0
	for b := range v.Bindings() {
		if b.Key != b.Destination {
			t.Errorf("binding %+v, want its key like its queue", b)
		}
		n++
	}
	if n != 3 || len(v.queues) != 3 {
		t.Errorf("%d bindings and %d queues, want 3 of each", n, len(v.queues))
	}
}

func FuzzDecodeFlat(f *testing.F) {
	f.Add(encode(flatQueue()))
	f.Add(encode(flatBinding()))
	f.Add([]byte(`{"v":1,"v":2,"name":"é"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		likeJSON[storedQueue](t, b)
		likeJSON[storedBinding](t, b)
	})
}

func BenchmarkDecodeQueue(b *testing.B) {
	value := encode(flatQueue())
	b.ReportAllocs()
	for b.Loop() {
		var d storedQueue
		if err := decode(value, &d); err != nil {
			b.Fatal(err)
		}
	}
}
