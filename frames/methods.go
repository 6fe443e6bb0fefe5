package frames

import "encoding/binary"

// Class ids.
const (
	ClassConnection = 10
	ClassChannel    = 20
	ClassAccess     = 30
	ClassExchange   = 40
	ClassQueue      = 50
	ClassBasic      = 60
	ClassConfirm    = 85
	ClassTx         = 90
)

// A MethodID is class<<16 | method.
type MethodID uint32

// Class is the class id.
func (id MethodID) Class() uint16 { return uint16(id >> 16) }

// Method is the method id within its class.
func (id MethodID) Method() uint16 { return uint16(id) }

// The methods of AMQP 0-9-1 and of RabbitMQ's extensions.
const (
	ConnectionStartID          MethodID = 10<<16 | 10
	ConnectionStartOkID        MethodID = 10<<16 | 11
	ConnectionSecureID         MethodID = 10<<16 | 20
	ConnectionSecureOkID       MethodID = 10<<16 | 21
	ConnectionTuneID           MethodID = 10<<16 | 30
	ConnectionTuneOkID         MethodID = 10<<16 | 31
	ConnectionOpenID           MethodID = 10<<16 | 40
	ConnectionOpenOkID         MethodID = 10<<16 | 41
	ConnectionCloseID          MethodID = 10<<16 | 50
	ConnectionCloseOkID        MethodID = 10<<16 | 51
	ConnectionBlockedID        MethodID = 10<<16 | 60
	ConnectionUnblockedID      MethodID = 10<<16 | 61
	ConnectionUpdateSecretID   MethodID = 10<<16 | 70
	ConnectionUpdateSecretOkID MethodID = 10<<16 | 71
	ChannelOpenID              MethodID = 20<<16 | 10
	ChannelOpenOkID            MethodID = 20<<16 | 11
	ChannelFlowID              MethodID = 20<<16 | 20
	ChannelFlowOkID            MethodID = 20<<16 | 21
	ChannelCloseID             MethodID = 20<<16 | 40
	ChannelCloseOkID           MethodID = 20<<16 | 41
	AccessRequestID            MethodID = 30<<16 | 10
	AccessRequestOkID          MethodID = 30<<16 | 11
	ExchangeDeclareID          MethodID = 40<<16 | 10
	ExchangeDeclareOkID        MethodID = 40<<16 | 11
	ExchangeDeleteID           MethodID = 40<<16 | 20
	ExchangeDeleteOkID         MethodID = 40<<16 | 21
	ExchangeBindID             MethodID = 40<<16 | 30
	ExchangeBindOkID           MethodID = 40<<16 | 31
	ExchangeUnbindID           MethodID = 40<<16 | 40
	ExchangeUnbindOkID         MethodID = 40<<16 | 51
	QueueDeclareID             MethodID = 50<<16 | 10
	QueueDeclareOkID           MethodID = 50<<16 | 11
	QueueBindID                MethodID = 50<<16 | 20
	QueueBindOkID              MethodID = 50<<16 | 21
	QueuePurgeID               MethodID = 50<<16 | 30
	QueuePurgeOkID             MethodID = 50<<16 | 31
	QueueDeleteID              MethodID = 50<<16 | 40
	QueueDeleteOkID            MethodID = 50<<16 | 41
	QueueUnbindID              MethodID = 50<<16 | 50
	QueueUnbindOkID            MethodID = 50<<16 | 51
	BasicQosID                 MethodID = 60<<16 | 10
	BasicQosOkID               MethodID = 60<<16 | 11
	BasicConsumeID             MethodID = 60<<16 | 20
	BasicConsumeOkID           MethodID = 60<<16 | 21
	BasicCancelID              MethodID = 60<<16 | 30
	BasicCancelOkID            MethodID = 60<<16 | 31
	BasicPublishID             MethodID = 60<<16 | 40
	BasicReturnID              MethodID = 60<<16 | 50
	BasicDeliverID             MethodID = 60<<16 | 60
	BasicGetID                 MethodID = 60<<16 | 70
	BasicGetOkID               MethodID = 60<<16 | 71
	BasicGetEmptyID            MethodID = 60<<16 | 72
	BasicAckID                 MethodID = 60<<16 | 80
	BasicRejectID              MethodID = 60<<16 | 90
	BasicRecoverAsyncID        MethodID = 60<<16 | 100
	BasicRecoverID             MethodID = 60<<16 | 110
	BasicRecoverOkID           MethodID = 60<<16 | 111
	BasicNackID                MethodID = 60<<16 | 120
	ConfirmSelectID            MethodID = 85<<16 | 10
	ConfirmSelectOkID          MethodID = 85<<16 | 11
	TxSelectID                 MethodID = 90<<16 | 10
	TxSelectOkID               MethodID = 90<<16 | 11
	TxCommitID                 MethodID = 90<<16 | 20
	TxCommitOkID               MethodID = 90<<16 | 21
	TxRollbackID               MethodID = 90<<16 | 30
	TxRollbackOkID             MethodID = 90<<16 | 31
)

// A Method is one decoded method: a pointer to one of the structs below.
type Method interface {
	ID() MethodID
	fields(c *codec)
}

// SplitMethod splits a method frame's payload into the id and the arguments,
// which alias it.
func SplitMethod(payload []byte) (id MethodID, args []byte, ok bool) {
	if len(payload) < 4 {
		return 0, nil, false
	}
	return MethodID(binary.BigEndian.Uint32(payload)), payload[4:], true
}

// DecodeMethod decodes a method's arguments. Strings and tables own their
// memory; []byte fields alias args. Arguments that are cut short or have bytes
// left over are a 501, an unknown method a 503.
func DecodeMethod(id MethodID, args []byte) (Method, error) {
	m := newMethod(id)
	if m == nil {
		return nil, Errorf(CommandInvalid, "unknown method {%d,%d}", id.Class(), id.Method())
	}
	c := codec{b: args}
	m.fields(&c)
	if c.err == nil && len(c.b) == 0 {
		return m, nil
	}
	if e, ok := c.err.(*Error); ok && e != errTruncated {
		return nil, e
	}
	return nil, cannotDecode(args)
}

// AppendMethod appends a method frame.
func AppendMethod(dst []byte, channel uint16, m Method) []byte {
	start := len(dst)
	dst = begin(dst, MethodFrame, channel)
	dst = binary.BigEndian.AppendUint32(dst, uint32(m.ID()))
	c := codec{b: dst, writing: true}
	m.fields(&c)
	return end(c.b, start)
}

func newMethod(id MethodID) Method {
	switch id.Class() {
	case ClassConnection:
		return newConnectionMethod(id)
	case ClassChannel, ClassAccess, ClassConfirm, ClassTx:
		return newChannelMethod(id)
	case ClassExchange, ClassQueue:
		return newTopologyMethod(id)
	case ClassBasic:
		return newBasicMethod(id)
	}
	return nil
}
