package frames

// BasicQos is basic.qos.
type BasicQos struct {
	PrefetchSize  uint32
	PrefetchCount uint16
	Global        bool
}

// ID implements Method.
func (*BasicQos) ID() MethodID { return BasicQosID }

func (m *BasicQos) fields(c *codec) {
	c.u32(&m.PrefetchSize)
	c.u16(&m.PrefetchCount)
	c.bits(&m.Global)
}

// BasicQosOk is basic.qos-ok.
type BasicQosOk struct{}

// ID implements Method.
func (*BasicQosOk) ID() MethodID { return BasicQosOkID }

func (*BasicQosOk) fields(*codec) {}

// BasicConsume is basic.consume.
type BasicConsume struct {
	Ticket      uint16
	Queue       string
	ConsumerTag string
	NoLocal     bool
	NoAck       bool
	Exclusive   bool
	NoWait      bool
	Arguments   Table
}

// ID implements Method.
func (*BasicConsume) ID() MethodID { return BasicConsumeID }

func (m *BasicConsume) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.short(&m.ConsumerTag)
	c.bits(&m.NoLocal, &m.NoAck, &m.Exclusive, &m.NoWait)
	c.table(&m.Arguments)
}

// BasicConsumeOk is basic.consume-ok.
type BasicConsumeOk struct {
	ConsumerTag string
}

// ID implements Method.
func (*BasicConsumeOk) ID() MethodID { return BasicConsumeOkID }

func (m *BasicConsumeOk) fields(c *codec) {
	c.short(&m.ConsumerTag)
}

// BasicCancel is basic.cancel.
type BasicCancel struct {
	ConsumerTag string
	NoWait      bool
}

// ID implements Method.
func (*BasicCancel) ID() MethodID { return BasicCancelID }

func (m *BasicCancel) fields(c *codec) {
	c.short(&m.ConsumerTag)
	c.bits(&m.NoWait)
}

// BasicCancelOk is basic.cancel-ok.
type BasicCancelOk struct {
	ConsumerTag string
}

// ID implements Method.
func (*BasicCancelOk) ID() MethodID { return BasicCancelOkID }

func (m *BasicCancelOk) fields(c *codec) {
	c.short(&m.ConsumerTag)
}

// BasicPublish is basic.publish.
type BasicPublish struct {
	Ticket     uint16
	Exchange   string
	RoutingKey string
	Mandatory  bool
	Immediate  bool
}

// ID implements Method.
func (*BasicPublish) ID() MethodID { return BasicPublishID }

func (m *BasicPublish) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Exchange)
	c.short(&m.RoutingKey)
	c.bits(&m.Mandatory, &m.Immediate)
}

// BasicReturn is basic.return.
type BasicReturn struct {
	ReplyCode  uint16
	ReplyText  string
	Exchange   string
	RoutingKey string
}

// ID implements Method.
func (*BasicReturn) ID() MethodID { return BasicReturnID }

func (m *BasicReturn) fields(c *codec) {
	c.u16(&m.ReplyCode)
	c.short(&m.ReplyText)
	c.short(&m.Exchange)
	c.short(&m.RoutingKey)
}

// BasicDeliver is basic.deliver.
type BasicDeliver struct {
	ConsumerTag string
	DeliveryTag uint64
	Redelivered bool
	Exchange    string
	RoutingKey  string
}

// ID implements Method.
func (*BasicDeliver) ID() MethodID { return BasicDeliverID }

func (m *BasicDeliver) fields(c *codec) {
	c.short(&m.ConsumerTag)
	c.u64(&m.DeliveryTag)
	c.bits(&m.Redelivered)
	c.short(&m.Exchange)
	c.short(&m.RoutingKey)
}

// BasicGet is basic.get.
type BasicGet struct {
	Ticket uint16
	Queue  string
	NoAck  bool
}

// ID implements Method.
func (*BasicGet) ID() MethodID { return BasicGetID }

func (m *BasicGet) fields(c *codec) {
	c.u16(&m.Ticket)
	c.short(&m.Queue)
	c.bits(&m.NoAck)
}

// BasicGetOk is basic.get-ok.
type BasicGetOk struct {
	DeliveryTag  uint64
	Redelivered  bool
	Exchange     string
	RoutingKey   string
	MessageCount uint32
}

// ID implements Method.
func (*BasicGetOk) ID() MethodID { return BasicGetOkID }

func (m *BasicGetOk) fields(c *codec) {
	c.u64(&m.DeliveryTag)
	c.bits(&m.Redelivered)
	c.short(&m.Exchange)
	c.short(&m.RoutingKey)
	c.u32(&m.MessageCount)
}

// BasicGetEmpty is basic.get-empty.
type BasicGetEmpty struct {
	Reserved1 string
}

// ID implements Method.
func (*BasicGetEmpty) ID() MethodID { return BasicGetEmptyID }

func (m *BasicGetEmpty) fields(c *codec) {
	c.short(&m.Reserved1)
}

// BasicAck is basic.ack.
type BasicAck struct {
	DeliveryTag uint64
	Multiple    bool
}

// ID implements Method.
func (*BasicAck) ID() MethodID { return BasicAckID }

func (m *BasicAck) fields(c *codec) {
	c.u64(&m.DeliveryTag)
	c.bits(&m.Multiple)
}

// BasicReject is basic.reject.
type BasicReject struct {
	DeliveryTag uint64
	Requeue     bool
}

// ID implements Method.
func (*BasicReject) ID() MethodID { return BasicRejectID }

func (m *BasicReject) fields(c *codec) {
	c.u64(&m.DeliveryTag)
	c.bits(&m.Requeue)
}

// BasicRecoverAsync is basic.recover-async.
type BasicRecoverAsync struct {
	Requeue bool
}

// ID implements Method.
func (*BasicRecoverAsync) ID() MethodID { return BasicRecoverAsyncID }

func (m *BasicRecoverAsync) fields(c *codec) {
	c.bits(&m.Requeue)
}

// BasicRecover is basic.recover.
type BasicRecover struct {
	Requeue bool
}

// ID implements Method.
func (*BasicRecover) ID() MethodID { return BasicRecoverID }

func (m *BasicRecover) fields(c *codec) {
	c.bits(&m.Requeue)
}

// BasicRecoverOk is basic.recover-ok.
type BasicRecoverOk struct{}

// ID implements Method.
func (*BasicRecoverOk) ID() MethodID { return BasicRecoverOkID }

func (*BasicRecoverOk) fields(*codec) {}

// BasicNack is basic.nack.
type BasicNack struct {
	DeliveryTag uint64
	Multiple    bool
	Requeue     bool
}

// ID implements Method.
func (*BasicNack) ID() MethodID { return BasicNackID }

func (m *BasicNack) fields(c *codec) {
	c.u64(&m.DeliveryTag)
	c.bits(&m.Multiple, &m.Requeue)
}

func newBasicMethod(id MethodID) Method {
	switch id {
	case BasicQosID:
		return &BasicQos{}
	case BasicQosOkID:
		return &BasicQosOk{}
	case BasicConsumeID:
		return &BasicConsume{}
	case BasicConsumeOkID:
		return &BasicConsumeOk{}
	case BasicCancelID:
		return &BasicCancel{}
	case BasicCancelOkID:
		return &BasicCancelOk{}
	case BasicPublishID:
		return &BasicPublish{}
	case BasicReturnID:
		return &BasicReturn{}
	case BasicDeliverID:
		return &BasicDeliver{}
	case BasicGetID:
		return &BasicGet{}
	case BasicGetOkID:
		return &BasicGetOk{}
	case BasicGetEmptyID:
		return &BasicGetEmpty{}
	case BasicAckID:
		return &BasicAck{}
	case BasicRejectID:
		return &BasicReject{}
	case BasicRecoverAsyncID:
		return &BasicRecoverAsync{}
	case BasicRecoverID:
		return &BasicRecover{}
	case BasicRecoverOkID:
		return &BasicRecoverOk{}
	case BasicNackID:
		return &BasicNack{}
	}
	return nil
}
