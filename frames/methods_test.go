package frames

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
)

// argsTable is the table {"a": true} with its length, as in the vectors.
const argsTable = "\x00\x00\x00\x04\x01at\x01"

var someTable = Table{{"a", true}}

// methodVectors has every method with its payload: class, method, arguments.
var methodVectors = []struct {
	m    Method
	wire string
}{
	{&ConnectionStart{0, 9, someTable, []byte("PLAIN"), []byte("en_US")}, "\x00\x0a\x00\x0a" + "\x00\x09" + argsTable + "\x00\x00\x00\x05PLAIN" + "\x00\x00\x00\x05en_US"},
	{&ConnectionStartOk{someTable, "PLAIN", []byte("\x00u\x00p"), "en_US"}, "\x00\x0a\x00\x0b" + argsTable + "\x05PLAIN" + "\x00\x00\x00\x04\x00u\x00p" + "\x05en_US"},
	{&ConnectionSecure{[]byte("c")}, "\x00\x0a\x00\x14" + "\x00\x00\x00\x01c"},
	{&ConnectionSecureOk{[]byte("r")}, "\x00\x0a\x00\x15" + "\x00\x00\x00\x01r"},
	{&ConnectionTune{2047, 131072, 60}, "\x00\x0a\x00\x1e" + "\x07\xff" + "\x00\x02\x00\x00" + "\x00\x3c"},
	{&ConnectionTuneOk{2047, 131072, 60}, "\x00\x0a\x00\x1f" + "\x07\xff" + "\x00\x02\x00\x00" + "\x00\x3c"},
	{&ConnectionOpen{"/", "", true}, "\x00\x0a\x00\x28" + "\x01/" + "\x00" + "\x01"},
	{&ConnectionOpenOk{""}, "\x00\x0a\x00\x29" + "\x00"},
	{&ConnectionClose{320, "bye", 60, 40}, "\x00\x0a\x00\x32" + "\x01\x40" + "\x03bye" + "\x00\x3c\x00\x28"},
	{&ConnectionCloseOk{}, "\x00\x0a\x00\x33"},
	{&ConnectionBlocked{"low on memory"}, "\x00\x0a\x00\x3c" + "\x0dlow on memory"},
	{&ConnectionUnblocked{}, "\x00\x0a\x00\x3d"},
	{&ConnectionUpdateSecret{[]byte("s"), "why"}, "\x00\x0a\x00\x46" + "\x00\x00\x00\x01s" + "\x03why"},
	{&ConnectionUpdateSecretOk{}, "\x00\x0a\x00\x47"},

	{&ChannelOpen{""}, "\x00\x14\x00\x0a" + "\x00"},
	{&ChannelOpenOk{[]byte("x")}, "\x00\x14\x00\x0b" + "\x00\x00\x00\x01x"},
	{&ChannelFlow{true}, "\x00\x14\x00\x14" + "\x01"},
	{&ChannelFlowOk{true}, "\x00\x14\x00\x15" + "\x01"},
	{&ChannelClose{404, "no", 50, 10}, "\x00\x14\x00\x28" + "\x01\x94" + "\x02no" + "\x00\x32\x00\x0a"},
	{&ChannelCloseOk{}, "\x00\x14\x00\x29"},
	{&AccessRequest{"/data", true, false, true, false, true}, "\x00\x1e\x00\x0a" + "\x05/data" + "\x15"},
	{&AccessRequestOk{1}, "\x00\x1e\x00\x0b" + "\x00\x01"},

	{&ExchangeDeclare{1, "x", "topic", false, true, false, true, true, someTable}, "\x00\x28\x00\x0a" + "\x00\x01" + "\x01x" + "\x05topic" + "\x1a" + argsTable},
	{&ExchangeDeclareOk{}, "\x00\x28\x00\x0b"},
	{&ExchangeDelete{1, "x", true, false}, "\x00\x28\x00\x14" + "\x00\x01" + "\x01x" + "\x01"},
	{&ExchangeDeleteOk{}, "\x00\x28\x00\x15"},
	{&ExchangeBind{1, "d", "s", "k", true, someTable}, "\x00\x28\x00\x1e" + "\x00\x01" + "\x01d" + "\x01s" + "\x01k" + "\x01" + argsTable},
	{&ExchangeBindOk{}, "\x00\x28\x00\x1f"},
	{&ExchangeUnbind{1, "d", "s", "k", false, someTable}, "\x00\x28\x00\x28" + "\x00\x01" + "\x01d" + "\x01s" + "\x01k" + "\x00" + argsTable},
	{&ExchangeUnbindOk{}, "\x00\x28\x00\x33"},

	{&QueueDeclare{1, "q", true, false, true, false, true, someTable}, "\x00\x32\x00\x0a" + "\x00\x01" + "\x01q" + "\x15" + argsTable},
	{&QueueDeclareOk{"q", 5, 6}, "\x00\x32\x00\x0b" + "\x01q" + "\x00\x00\x00\x05" + "\x00\x00\x00\x06"},
	{&QueueBind{1, "q", "x", "k", true, someTable}, "\x00\x32\x00\x14" + "\x00\x01" + "\x01q" + "\x01x" + "\x01k" + "\x01" + argsTable},
	{&QueueBindOk{}, "\x00\x32\x00\x15"},
	{&QueuePurge{1, "q", true}, "\x00\x32\x00\x1e" + "\x00\x01" + "\x01q" + "\x01"},
	{&QueuePurgeOk{7}, "\x00\x32\x00\x1f" + "\x00\x00\x00\x07"},
	{&QueueDelete{1, "q", false, true, true}, "\x00\x32\x00\x28" + "\x00\x01" + "\x01q" + "\x06"},
	{&QueueDeleteOk{7}, "\x00\x32\x00\x29" + "\x00\x00\x00\x07"},
	{&QueueUnbind{1, "q", "x", "k", someTable}, "\x00\x32\x00\x32" + "\x00\x01" + "\x01q" + "\x01x" + "\x01k" + argsTable},
	{&QueueUnbindOk{}, "\x00\x32\x00\x33"},

	{&BasicQos{1, 2, true}, "\x00\x3c\x00\x0a" + "\x00\x00\x00\x01" + "\x00\x02" + "\x01"},
	{&BasicQosOk{}, "\x00\x3c\x00\x0b"},
	{&BasicConsume{1, "q", "t", true, false, false, true, someTable}, "\x00\x3c\x00\x14" + "\x00\x01" + "\x01q" + "\x01t" + "\x09" + argsTable},
	{&BasicConsumeOk{"t"}, "\x00\x3c\x00\x15" + "\x01t"},
	{&BasicCancel{"t", true}, "\x00\x3c\x00\x1e" + "\x01t" + "\x01"},
	{&BasicCancelOk{"t"}, "\x00\x3c\x00\x1f" + "\x01t"},
	{&BasicPublish{1, "x", "k", false, true}, "\x00\x3c\x00\x28" + "\x00\x01" + "\x01x" + "\x01k" + "\x02"},
	{&BasicReturn{312, "NO_ROUTE", "x", "k"}, "\x00\x3c\x00\x32" + "\x01\x38" + "\x08NO_ROUTE" + "\x01x" + "\x01k"},
	{&BasicDeliver{"t", 258, true, "x", "k"}, "\x00\x3c\x00\x3c" + "\x01t" + "\x00\x00\x00\x00\x00\x00\x01\x02" + "\x01" + "\x01x" + "\x01k"},
	{&BasicGet{1, "q", true}, "\x00\x3c\x00\x46" + "\x00\x01" + "\x01q" + "\x01"},
	{&BasicGetOk{258, true, "x", "k", 9}, "\x00\x3c\x00\x47" + "\x00\x00\x00\x00\x00\x00\x01\x02" + "\x01" + "\x01x" + "\x01k" + "\x00\x00\x00\x09"},
	{&BasicGetEmpty{""}, "\x00\x3c\x00\x48" + "\x00"},
	{&BasicAck{258, true}, "\x00\x3c\x00\x50" + "\x00\x00\x00\x00\x00\x00\x01\x02" + "\x01"},
	{&BasicReject{258, true}, "\x00\x3c\x00\x5a" + "\x00\x00\x00\x00\x00\x00\x01\x02" + "\x01"},
	{&BasicRecoverAsync{true}, "\x00\x3c\x00\x64" + "\x01"},
	{&BasicRecover{true}, "\x00\x3c\x00\x6e" + "\x01"},
	{&BasicRecoverOk{}, "\x00\x3c\x00\x6f"},
	{&BasicNack{258, false, true}, "\x00\x3c\x00\x78" + "\x00\x00\x00\x00\x00\x00\x01\x02" + "\x02"},

	{&ConfirmSelect{true}, "\x00\x55\x00\x0a" + "\x01"},
	{&ConfirmSelectOk{}, "\x00\x55\x00\x0b"},
	{&TxSelect{}, "\x00\x5a\x00\x0a"},
	{&TxSelectOk{}, "\x00\x5a\x00\x0b"},
	{&TxCommit{}, "\x00\x5a\x00\x14"},
	{&TxCommitOk{}, "\x00\x5a\x00\x15"},
	{&TxRollback{}, "\x00\x5a\x00\x1e"},
	{&TxRollbackOk{}, "\x00\x5a\x00\x1f"},
}

func TestMethodsOnTheWire(t *testing.T) {
	for _, tt := range methodVectors {
		frame := AppendMethod([]byte("x"), 258, tt.m)
		want := string(appendFrame([]byte("x"), MethodFrame, 258, []byte(tt.wire)))
		if string(frame) != want {
			t.Errorf("%T: %q, want %q", tt.m, frame, want)
		}
		got, err := decodePayload([]byte(tt.wire))
		if err != nil || !reflect.DeepEqual(got, tt.m) {
			t.Errorf("%T: %+v, %v, want %+v", tt.m, got, err, tt.m)
		}
	}
}

func decodePayload(payload []byte) (Method, error) {
	id, args, ok := SplitMethod(payload)
	if !ok {
		return nil, errors.New("no method id")
	}
	return DecodeMethod(id, args)
}

func TestEveryMethodHasAVector(t *testing.T) {
	vectors := make(map[MethodID]bool)
	for _, tt := range methodVectors {
		vectors[tt.m.ID()] = true
	}
	for class := range uint32(100) {
		for method := range uint32(130) {
			id := MethodID(class<<16 | method)
			m := newMethod(id)
			if (m != nil) != vectors[id] {
				t.Errorf("method {%d,%d} is %T, has a vector: %v", class, method, m, vectors[id])
			}
			if m != nil && (m.ID() != id || uint32(id.Class()) != class || uint32(id.Method()) != method) {
				t.Errorf("method {%d,%d} says {%d,%d}", class, method, m.ID().Class(), m.ID().Method())
			}
		}
	}
}

// TestEveryFieldIsOnTheWire sets each field of each method alone: what is not
// zero must come back, and in that field only.
func TestEveryFieldIsOnTheWire(t *testing.T) {
	for _, tt := range methodVectors {
		typ := reflect.TypeOf(tt.m).Elem()
		for i := range typ.NumField() {
			m := newMethod(tt.m.ID())
			fill(reflect.ValueOf(m).Elem().Field(i))
			frame := AppendMethod(nil, 1, m)
			got, err := decodePayload(frame[7 : len(frame)-1])
			if err != nil {
				t.Fatalf("%s.%s: %v", typ.Name(), typ.Field(i).Name, err)
			}
			for j := range typ.NumField() {
				field := reflect.ValueOf(got).Elem().Field(j)
				zero := field.IsZero() || field.Kind() == reflect.Slice && field.Len() == 0
				if zero == (i == j) {
					t.Errorf("%s: only %s was set, %s is %v", typ.Name(), typ.Field(i).Name, typ.Field(j).Name, field)
				}
			}
		}
	}
}

func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.String:
		v.SetString(strings.Repeat("ü", 127)) // 254 bytes
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(1<<v.Type().Bits() - 1)
	default:
		switch v.Interface().(type) {
		case []byte:
			v.SetBytes(bytes.Repeat([]byte{0xff}, 300))
		case Table:
			v.Set(reflect.ValueOf(someTable))
		}
	}
}

func TestDecodeMethodErrors(t *testing.T) {
	for _, tt := range []struct {
		id   MethodID
		args string
		want string
	}{
		{QueueDeclareID, "\x00\x00\x05ab", "FRAME_ERROR - cannot decode <<0,0,5,97,98>>"},
		{QueueDeclareID, "", "FRAME_ERROR - cannot decode <<>>"},
		{QueuePurgeID, "\x00\x01\x01q\x00X", "FRAME_ERROR - cannot decode <<0,1,1,113,0,88>>"}, // a byte left over
		{TxSelectID, "abc", "FRAME_ERROR - cannot decode <<97,98,99>>"},
		{BasicAckID, "\x00\x00\x00\x00\x00\x00\x00\x01", "FRAME_ERROR - cannot decode <<0,0,0,0,0,0,0,1>>"},
		{ConnectionTuneOkID, "\x00\x00\x00\x00\x00\x00\x00", "FRAME_ERROR - cannot decode <<0,0,0,0,0,0,0>>"},
		{ConnectionSecureOkID, "\xff\xff\xff\xffx", "FRAME_ERROR - cannot decode <<255,255,255,255,120>>"},
		{QueuePurgeID, "\x00\x01\x01\xff\x00", "FRAME_ERROR - Malformed UTF-8 in shortstr"},
		{QueuePurgeID, "\x00\x01\x02\xc3\x28\x00", "FRAME_ERROR - Malformed UTF-8 in shortstr"},
		{MethodID(50<<16 | 99), "", "COMMAND_INVALID - unknown method {50,99}"},
		{MethodID(70<<16 | 10), "", "COMMAND_INVALID - unknown method {70,10}"},
		{MethodID(0), "", "COMMAND_INVALID - unknown method {0,0}"},
		{QueueUnbindID, "\x00\x00\x00\x00\x00\x00\x00\x00\x07\x01af\x7f\x80\x00\x00", "SYNTAX_ERROR - field 'a' of a field table is or has a number that is not finite"},
		{QueueUnbindID, "\x00\x00\x00\x00\x00\x00\x00\x00\x02\x01a", "SYNTAX_ERROR - a field table ends in the middle of a field"},
		{QueueUnbindID, "\x00\x00\x00\x00\x00\x00\x00\x00\x03\x01az", "SYNTAX_ERROR - unknown field table type 'z'"},
		{QueueUnbindID, "\x00\x00\x00\x00\x00\x00\x00\x00\x09\x01at\x01", "FRAME_ERROR - cannot decode <<0,0,0,0,0,0,0,0,9,1,97,116,1>>"}, // longer than the frame
		{QueueUnbindID, "\x00\x00\x00\x00\x00\x00\x00\x00\x08\x01aS\x00\x00\x00\x02b", "SYNTAX_ERROR - a field table ends in the middle of a field"},
	} {
		m, err := DecodeMethod(tt.id, []byte(tt.args))
		wantReply(t, err, tt.want)
		if m != nil {
			t.Errorf("{%d,%d} %q: %+v", tt.id.Class(), tt.id.Method(), tt.args, m)
		}
	}
}

func TestMalformedUTF8BelongsToNoMethod(t *testing.T) {
	_, err := DecodeMethod(ChannelOpenID, []byte("\x01\xff"))
	if e, ok := errors.AsType[*Error](err); !ok || !e.Unbound {
		t.Errorf("%+v is not unbound", err)
	}
	_, err = DecodeMethod(ChannelOpenID, nil)
	if e, ok := errors.AsType[*Error](err); !ok || e.Unbound {
		t.Errorf("%+v is unbound", err)
	}
}

// TestEveryCutMethodIsRefused cuts each vector at every length.
func TestEveryCutMethodIsRefused(t *testing.T) {
	for _, tt := range methodVectors {
		for i := 4; i < len(tt.wire); i++ {
			if m, err := decodePayload([]byte(tt.wire[:i])); err == nil {
				t.Errorf("%T cut to %d of %d bytes: %+v", tt.m, i, len(tt.wire), m)
			}
		}
		if m, err := decodePayload([]byte(tt.wire + "\x00")); err == nil {
			t.Errorf("%T and a byte more: %+v", tt.m, m)
		}
	}
}

func TestSplitMethod(t *testing.T) {
	id, args, ok := SplitMethod([]byte("\x00\x3c\x00\x28ab"))
	if id != BasicPublishID || string(args) != "ab" || !ok {
		t.Errorf("%x %q %v", id, args, ok)
	}
	if _, _, ok := SplitMethod([]byte{0, 60, 0}); ok {
		t.Error("three bytes were taken for a method")
	}
}

func TestALongNameIsCut(t *testing.T) {
	frame := AppendMethod(nil, 1, &BasicCancelOk{ConsumerTag: strings.Repeat("x", 300)})
	m, err := decodePayload(frame[7 : len(frame)-1])
	if err != nil || m.(*BasicCancelOk).ConsumerTag != strings.Repeat("x", 255) {
		t.Errorf("%+v, %v", m, err)
	}
}

func FuzzMethod(f *testing.F) {
	for _, tt := range methodVectors {
		f.Add([]byte(tt.wire))
	}
	f.Add([]byte("\x00\x32\x00\x0a\x00\x00\x05ab"))
	f.Fuzz(func(t *testing.T, payload []byte) {
		m, err := decodePayload(payload)
		if err != nil {
			return
		}
		first := AppendMethod(nil, 1, m)
		if len(first) != len(payload)+Overhead { // bits and L may change, lengths do not
			t.Fatalf("%q became %q", payload, first)
		}
		again, err := decodePayload(first[7 : len(first)-1])
		if err != nil {
			t.Fatalf("%+v does not decode again: %v", m, err)
		}
		// Bytes are compared, not values: a NaN does not equal itself.
		if second := AppendMethod(nil, 1, again); !bytes.Equal(first, second) {
			t.Errorf("%q became %q", first, second)
		}
	})
}
